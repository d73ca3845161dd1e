package gcs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// startUpload begins a resumable upload. Its preconditions are looked at when it is complete.
func (s *Server) startUpload(c *call) (answer, error) {
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	in, err := c.insertion(raw, c.r.Header.Get("X-Upload-Content-Type"))
	if err != nil {
		return nil, err
	}
	total := int64(-1)
	if text := c.r.Header.Get("X-Upload-Content-Length"); text != "" {
		if total, err = strconv.ParseInt(text, 10, 64); err != nil || total < 0 {
			return nil, refusal.New(refusal.Invalid, "Invalid X-Upload-Content-Length %q: expected a number of bytes", text)
		}
	}
	id, err := s.Objects.StartUpload(in.object, in.conditions, in.declared, total)
	if err != nil {
		return nil, err
	}
	query := url.Values{"uploadType": {"resumable"}, "name": {c.object}, "upload_id": {id}}
	location := c.base() + "/upload/storage/v1/b/" + url.PathEscape(c.bucket) + "/o?" + query.Encode()
	return status{code: http.StatusOK, headers: map[string]string{"Location": location, "X-GUploader-UploadID": id}}, nil
}

// sessionRoute finds which step of a resumable upload a request is.
func (s *Server) sessionRoute(c *call) (handler, error) {
	chunk := verbs{"PUT": {"gcs.upload.chunk", s.chunk}, "POST": {"gcs.upload.chunk", s.chunk}, "DELETE": {"gcs.upload.cancel", s.cancel}}
	if strings.HasPrefix(c.r.Header.Get("Content-Range"), "bytes */") {
		chunk["PUT"] = chunk["POST"]
		status := chunk["PUT"]
		status.name, status.handle = "gcs.upload.status", s.uploadStatus
		chunk["PUT"], chunk["POST"] = status, status
	}
	return c.pick(chunk)
}

// span is a Content-Range; first is -1 in a question for the status, total where it is not known.
type span struct{ first, last, total int64 }

var contentRange = regexp.MustCompile(`^bytes (?:\*|(\d{1,18})-(\d{1,18}))/(?:\*|(\d{1,18}))$`)

func parseSpan(text string) (r span, err error) {
	m := contentRange.FindStringSubmatch(text)
	if m == nil {
		return r, refusal.New(refusal.Invalid, "Invalid Content-Range %q: expected bytes first-last/total, with * for what is not known", text)
	}
	number := func(s string) int64 {
		if s == "" {
			return -1
		}
		n, _ := strconv.ParseInt(s, 10, 64) // digits that fit
		return n
	}
	r = span{number(m[1]), number(m[2]), number(m[3])}
	if r.first > r.last {
		return r, refusal.New(refusal.Invalid, "Invalid Content-Range %q: it ends before it begins", text)
	}
	return r, nil
}

// uploadStatus answers how far an upload has come. An upload of which the total is named and there is complete by it: this is
// how a client ends one whose last chunk was not known to be the last.
func (s *Server) uploadStatus(c *call) (answer, error) {
	r, err := parseSpan(c.r.Header.Get("Content-Range"))
	if err != nil {
		return nil, err
	}
	if n, _ := io.CopyN(io.Discard, c.r.Body, 1); n > 0 {
		return nil, refusal.New(refusal.Invalid, "Invalid request. A question for the status of an upload has no body.")
	}
	var declared objects.Declared
	if err := c.hashes(&declared); err != nil {
		return nil, err
	}
	u, err := s.Objects.Upload(c.param("upload_id"))
	if err != nil {
		return nil, err
	}
	p, err := u.Status(r.total, declared)
	return c.progress(p, err)
}

// chunk takes a part of an upload, or all of it where no Content-Range says which part.
func (s *Server) chunk(c *call) (answer, error) {
	in := objects.Chunk{Length: c.r.ContentLength, Total: c.r.ContentLength, Body: c.r.Body}
	if text := c.r.Header.Get("Content-Range"); text != "" {
		r, err := parseSpan(text)
		if err != nil {
			return nil, err
		}
		in.First, in.Length, in.Total = r.first, r.last-r.first+1, r.total
		if n := c.r.ContentLength; n >= 0 && n != in.Length {
			return nil, refusal.New(refusal.Invalid, "Invalid request. There were %d byte(s) in the request body. There should have been %d byte(s) (starting at offset %d and ending at offset %d) according to the Content-Range header.", n, in.Length, r.first, r.last)
		}
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, c.unsupported("header Content-Encoding: " + encoding) // which bytes Content-Range counts is not documented
	}
	if err := c.hashes(&in.Declared); err != nil {
		return nil, err
	}
	u, err := s.Objects.Upload(c.param("upload_id"))
	if err != nil {
		return nil, err
	}
	p, err := u.Write(in)
	// What is left of the body is passed over, or its sender would meet a closed connection in place of the answer.
	io.Copy(io.Discard, c.r.Body)
	return c.progress(p, err)
}

// progress is the answer to a chunk or a question: 308 and what is there, or the object.
func (c *call) progress(p objects.Progress, err error) (answer, error) {
	switch {
	case err != nil:
		return nil, err
	case p.Done != nil:
		return resource{c.objectResource(p.Done)}, nil
	}
	a := status{code: http.StatusPermanentRedirect, headers: map[string]string{}}
	if p.Persisted > 0 {
		a.headers["Range"] = fmt.Sprintf("bytes=0-%d", p.Persisted-1)
	}
	if c.r.Header.Get("X-GUploader-No-308") != "" {
		a.code = http.StatusOK
		a.headers["X-Http-Status-Code-Override"] = "308"
	}
	return a, nil
}

// cancel ends an upload, which the service answers with a code of its own (Cloud Storage documentation, "Resumable uploads").
func (s *Server) cancel(c *call) (answer, error) {
	u, err := s.Objects.Upload(c.param("upload_id"))
	if err == nil {
		err = u.Cancel()
	}
	return status{code: 499}, err
}

package gcs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// uploadRoute finds which kind of upload a request is, or which step of a resumable one.
func (s *Server) uploadRoute(c *call, path string) (handler, error) {
	parts, err := unescape(strings.Split(path, "/")...)
	if err != nil {
		return nil, err
	}
	if len(parts) != 3 || parts[0] != "b" || parts[2] != "o" {
		return nil, c.unknown(parts)
	}
	c.bucket, c.object = parts[1], c.param("name")
	if c.param("upload_id") != "" {
		return s.sessionRoute(c)
	}
	switch kind := c.param("uploadType"); kind {
	case "media":
		return c.pick(verbs{"POST": {"objects.insert", s.insertMedia}})
	case "multipart":
		return c.pick(verbs{"POST": {"objects.insert", s.insertMultipart}})
	case "resumable":
		return c.pick(verbs{"POST": {"gcs.upload.start", s.startUpload}})
	default:
		return nil, &refusal.Error{Reason: refusal.Invalid, Location: "uploadType",
			Message: fmt.Sprintf("Invalid value for uploadType: %q: expected media, multipart or resumable", kind)}
	}
}

// insertion is what is known of an object before its bytes come.
type insertion struct {
	object     objects.Object
	conditions objects.Conditions
	declared   objects.Declared
}

// insertion joins what the request's resource, parameters and headers say.
func (c *call) insertion(raw map[string]json.RawMessage, contentType string) (in insertion, err error) {
	w, err := readObject(raw)
	if err != nil {
		return in, err
	}
	if w.Bucket != "" && w.Bucket != c.bucket {
		return in, refusal.New(refusal.Invalid, "Value '%s' in content does not agree with value '%s' in the path", w.Bucket, c.bucket)
	}
	if in.conditions, err = c.conditions("if"); err != nil {
		return in, err
	}
	if in.declared, err = w.declared(); err != nil {
		return in, err
	}
	if err = c.hashes(&in.declared); err != nil {
		return in, err
	}
	c.object = cmp.Or(c.object, w.Name) // the parameter overrides the resource
	in.object = objects.Object{Bucket: c.bucket, Name: c.object, Attributes: w.attributes()}
	in.object.ContentType = cmp.Or(w.ContentType, contentType)
	in.object.ContentEncoding = cmp.Or(c.param("contentEncoding"), w.ContentEncoding)
	return in, nil
}

// insertMedia makes an object of a request's body.
func (s *Server) insertMedia(c *call) (answer, error) {
	in, err := c.insertion(nil, c.r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	content, err := c.content()
	if err != nil {
		return nil, err
	}
	return s.insert(c, in, content, nil)
}

// insertMultipart makes an object of the second part of a request, with what the first one says of it.
func (s *Server) insertMultipart(c *call) (answer, error) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil, refusal.New(refusal.Invalid, "Content-Type %q: expected multipart/related with a boundary", c.r.Header.Get("Content-Type"))
	}
	content, err := c.content()
	if err != nil {
		return nil, err
	}
	parts := multipart.NewReader(content, params["boundary"])
	first, err := parts.NextRawPart()
	if err != nil {
		return nil, malformed(err)
	}
	var raw map[string]json.RawMessage
	if err := readJSON(first, &raw); err != nil {
		return nil, err
	}
	media, err := parts.NextRawPart()
	if err != nil {
		return nil, malformed(err)
	}
	if encoding := media.Header.Get("Content-Transfer-Encoding"); encoding != "" && encoding != "binary" {
		return nil, c.unsupported("Content-Transfer-Encoding " + encoding)
	}
	in, err := c.insertion(raw, media.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	return s.insert(c, in, media, func() error { return last(parts) })
}

// last refuses a third part.
func last(parts *multipart.Reader) error {
	switch _, err := parts.NextRawPart(); {
	case err == nil:
		return refusal.New(refusal.Invalid, "Malformed multipart body: expected two parts, got more")
	case err != io.EOF:
		return malformed(err)
	}
	return nil
}

// malformed tells a body that broke off from one that is wrong.
func malformed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", objects.ErrBroken, err)
	}
	return refusal.New(refusal.Invalid, "Malformed multipart body: %v", err)
}

// insert stores a body; end, if not nil, checks what follows it.
func (s *Server) insert(c *call, in insertion, body io.Reader, end func() error) (answer, error) {
	d, err := s.Objects.Draft(in.object, in.conditions)
	if err != nil {
		return nil, err
	}
	source := &source{r: body}
	_, err = io.Copy(d, source)
	if source.failed != nil {
		err = fmt.Errorf("%w: %w", objects.ErrBroken, source.failed)
	}
	if err == nil && end != nil {
		err = end()
	}
	if err != nil {
		return nil, errors.Join(err, d.Discard())
	}
	o, err := d.Publish(in.declared)
	if err != nil {
		return nil, err
	}
	return resource{c.objectResource(&o)}, nil
}

// source remembers how reading a body failed, to tell that from a failure to store it.
type source struct {
	r      io.Reader
	failed error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.failed = err
	}
	return n, err
}

package gcs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

const (
	// maxBatchCalls and maxBatchBytes bound a batch (Cloud Storage documentation, "Batch requests").
	maxBatchCalls = 100
	maxBatchBytes = 10 << 20
)

func (s *Server) batchRoute(c *call) (handler, error) {
	return c.pick(verbs{"POST": {"batch", s.batch}})
}

// batch makes the calls in a request, in order, and answers with their answers.
func (s *Server) batch(c *call) (answer, error) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" || params["boundary"] == "" {
		return nil, refusal.New(refusal.Invalid, "Content-Type %q: expected multipart/mixed with a boundary", c.r.Header.Get("Content-Type"))
	}
	calls, err := c.batchCalls(multipart.NewReader(io.LimitReader(c.r.Body, maxBatchBytes), params["boundary"]))
	if err != nil {
		return nil, err
	}
	var out batchAnswer
	w := multipart.NewWriter(&out.body)
	out.contentType = "multipart/mixed; boundary=" + w.Boundary()
	for _, inner := range calls {
		if err := s.batched(w, inner); err != nil {
			return nil, err
		}
	}
	return &out, w.Close()
}

// batchCall is one call of a batch.
type batchCall struct {
	id      string
	request *http.Request
}

func (c *call) batchCalls(parts *multipart.Reader) (calls []batchCall, err error) {
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, malformed(err)
		}
		if len(calls) == maxBatchCalls {
			return nil, refusal.New(refusal.Invalid, "The batch request has more than %d calls.", maxBatchCalls)
		}
		inner, err := c.batchCall(part)
		if err != nil {
			return nil, err
		}
		calls = append(calls, inner)
	}
	if len(calls) == 0 {
		return nil, refusal.New(refusal.Invalid, "The batch request has no calls.")
	}
	return calls, nil
}

// batchCall reads a call, which has what headers of the batch it has not itself, but for those of the content.
func (c *call) batchCall(part *multipart.Part) (out batchCall, err error) {
	text, err := io.ReadAll(part)
	if err != nil {
		return out, malformed(err)
	}
	if !bytes.Contains(text, []byte("\n\r\n")) && !bytes.Contains(text, []byte("\n\n")) {
		text = append(bytes.TrimRight(text, "\r\n"), "\r\n\r\n"...) // a request without a body may end with its last header
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return out, refusal.New(refusal.Invalid, "Malformed call in the batch request: %v", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // it is here, and shorter than it says: no connection that broke off
		return out, refusal.New(refusal.Invalid, "Malformed call in the batch request: reading the body of %s %s: %v", r.Method, r.URL.Path, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	path := r.URL.EscapedPath()
	if strings.HasPrefix(path, batchPrefix) || strings.Contains(path, "upload/storage/") || r.URL.Query().Get("alt") == "media" ||
		!strings.HasPrefix(path, jsonPrefix+"/") {
		return out, refusal.New(refusal.Invalid, "A batch request can hold calls of the JSON API that are neither uploads nor downloads, not %s %s", r.Method, r.URL.Path)
	}
	for name, values := range c.r.Header {
		if len(r.Header.Values(name)) == 0 && !strings.HasPrefix(name, "Content-") {
			r.Header[name] = values
		}
	}
	r.Host, r.RemoteAddr = c.r.Host, c.r.RemoteAddr
	return batchCall{part.Header.Get("Content-Id"), r.WithContext(c.r.Context())}, nil
}

// batched makes a call and writes its answer.
func (s *Server) batched(w *multipart.Writer, inner batchCall) error {
	kept := &keptAnswer{header: http.Header{}}
	s.ServeHTTP(kept, inner.request)
	header := textproto.MIMEHeader{"Content-Type": {"application/http"}}
	if inner.id != "" {
		header.Set("Content-Id", "<response-"+strings.TrimPrefix(strings.TrimSpace(inner.id), "<"))
	}
	part, err := w.CreatePart(header)
	if err != nil {
		return err
	}
	code := max(kept.code, http.StatusOK)
	_, err = fmt.Fprintf(part, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	err = errors.Join(err, kept.header.Write(part))
	_, failed := part.Write(append([]byte("\r\n"), kept.body.Bytes()...))
	return errors.Join(err, failed)
}

// keptAnswer keeps an answer in memory.
type keptAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(code int)        { k.code = max(k.code, code) }
func (k *keptAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }

// batchAnswer is the answers to a batch.
type batchAnswer struct {
	contentType string
	body        bytes.Buffer
}

func (*batchAnswer) discard() {}

func (a *batchAnswer) send(c *call) int {
	c.write(http.StatusOK, a.contentType, a.body.Bytes())
	return http.StatusOK
}

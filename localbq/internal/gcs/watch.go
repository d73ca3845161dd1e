package gcs

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Watcher follows calls through their phases: received (nothing done), applied (done, answer not sent), answered.
type Watcher interface {
	// Receive is called before anything is done. An error is answered in place of the call: a refusal as it is, ErrCut by
	// cutting the connection.
	Receive(r *http.Request, c Call) error
	// Applied is called when the work is done and the answer is still here.
	Applied(r *http.Request, c Call) error
	// Answered is called when the answer has been handed to the connection.
	Answered(r *http.Request, c Call, code int)
	// Broken is called in place of the others when the client broke the call off.
	Broken(r *http.Request, c Call)
}

// Call names a call to a Watcher.
type Call struct {
	Method    string // objects.insert
	Principal string
	// Object is gs://bucket/object or gs://bucket, as far as the call names one.
	Object string
}

// ErrCut asks for the connection to be cut without an answer.
var ErrCut = errors.New("connection cut")

// principal is who a request comes from: the p of the token "local:p".
func principal(authorization string) string {
	if p, ok := strings.CutPrefix(authorization, "Bearer local:"); ok && p != "" {
		return p
	}
	return "anonymous@local"
}

func (c *call) named() Call {
	named := Call{Method: c.method, Principal: principal(c.r.Header.Get("Authorization"))}
	switch {
	case c.object != "":
		named.Object = "gs://" + c.bucket + "/" + c.object
	case c.bucket != "":
		named.Object = "gs://" + c.bucket
	}
	return named
}

// watch carries a call through its phases.
func (s *Server) watch(c *call, handle handler) {
	w := s.Watch
	if w == nil {
		w = unwatched{}
	}
	if err := w.Receive(c.r, c.named()); err != nil {
		c.cutOrRefuse(err)
		return
	}
	in := &source{r: c.r.Body}
	c.r.Body = io.NopCloser(in)
	a, err := handle(c)
	if errors.Is(err, objects.ErrBroken) && in.failed == nil { // all of it came, and it is less than it says
		err = refusal.New(refusal.Invalid, "Malformed request body: %v", err)
	}
	if errors.Is(err, objects.ErrBroken) {
		w.Broken(c.r, c.named())
		panic(http.ErrAbortHandler)
	}
	if withheld := w.Applied(c.r, c.named()); withheld != nil {
		if a != nil {
			a.discard()
		}
		c.cutOrRefuse(withheld)
		return
	}
	w.Answered(c.r, c.named(), c.send(a, err))
}

func (c *call) cutOrRefuse(err error) {
	if errors.Is(err, ErrCut) || refusal.Of(err) == nil && c.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	c.refuse(err)
}

// unwatched lets everything pass.
type unwatched struct{}

func (unwatched) Receive(*http.Request, Call) error { return nil }
func (unwatched) Applied(*http.Request, Call) error { return nil }
func (unwatched) Answered(*http.Request, Call, int) {}
func (unwatched) Broken(*http.Request, Call)        {}

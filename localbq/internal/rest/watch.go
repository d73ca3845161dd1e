package rest

import (
	"errors"
	"net/http"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// Watcher follows calls through their phases. The zero phases are: received (nothing done), applied (done, answer not
// sent), answered.
type Watcher interface {
	// Receive is called before anything is done. An error is answered in place of the call: a refusal as it is, ErrCut by
	// cutting the connection.
	Receive(r *http.Request, c Call) error
	// Applied is called when the work is done, with its error, and the answer is still here.
	Applied(r *http.Request, c Call, failed error) error
	// Answered is called when the answer has been handed to the connection.
	Answered(r *http.Request, c Call, code int)
}

// Call names a call to a Watcher.
type Call struct {
	Method    string // tables.insert
	Principal string
	Table     store.TableRef // as far as the path names one
	Job       string
}

// ErrCut asks for the connection to be cut without an answer.
var ErrCut = errors.New("connection cut")

// watch carries a call through its phases.
func (s *Server) watch(c *call, handle handler) {
	if s.Watch == nil {
		answer, err := handle(c)
		c.answer(answer, err)
		return
	}
	named := func() Call {
		return Call{Method: c.method, Principal: c.principal, Table: c.dataset().Table(undecorated(c.r.PathValue("table"))), Job: c.r.PathValue("job")}
	}
	if err := s.Watch.Receive(c.r, named()); err != nil {
		c.cutOrAnswer(err)
		return
	}
	answer, err := handle(c)
	if withheld := s.Watch.Applied(c.r, named(), err); withheld != nil {
		c.cutOrAnswer(withheld)
		return
	}
	s.Watch.Answered(c.r, named(), c.answer(answer, err))
}

func (c *call) cutOrAnswer(err error) {
	if errors.Is(err, ErrCut) {
		panic(http.ErrAbortHandler)
	}
	if refusal.Of(err) == nil && c.r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // nobody listens
	}
	c.answer(nil, err)
}

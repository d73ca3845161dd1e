package watch

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/rest"
)

// REST watches the calls of the REST face.
func (w *Watch) REST() rest.Watcher { return &restWatch{watch: w} }

type restWatch struct {
	watch  *Watch
	events sync.Map // *http.Request to *audit.Event, of the calls that are not over
}

func (w *restWatch) describe(r *http.Request, c rest.Call) fault.Call {
	call := fault.Call{Service: "rest", Method: c.Method, Principal: c.Principal, Remote: r.RemoteAddr}
	if c.Table.Table != "" {
		call.Table = c.Table.Path()
	}
	return call
}

func (w *restWatch) Receive(r *http.Request, c rest.Call) error {
	call := w.describe(r, c)
	e := w.watch.begin(call)
	w.events.Store(r, e)
	return w.at(r, fault.Receive, call, audit.Cut)
}

func (w *restWatch) Applied(r *http.Request, c rest.Call, _ error) error {
	return w.at(r, fault.Applied, w.describe(r, c), audit.Withheld)
}

// at asks the rules. An error is the answer, and the call's record is then complete.
func (w *restWatch) at(r *http.Request, phase fault.Phase, c fault.Call, kept audit.Fate) error {
	e := w.event(r)
	v := w.watch.Faults.At(r.Context(), phase, c)
	e.Update(func(record *audit.Record) { record.Rules = append(record.Rules, v.Fired...) })
	switch {
	case v.Reset:
		w.done(r, kept, 0, "")
		return rest.ErrCut
	case v.HTTP != nil:
		w.done(r, audit.Sent, v.HTTP.Code, v.HTTP.Message)
		return &refusal.Error{Reason: refusal.Reason(v.HTTP.Reason), Message: cmp.Or(v.HTTP.Message, v.HTTP.Reason), Status: v.HTTP.Code}
	case r.Context().Err() != nil:
		w.done(r, audit.Cut, 0, "")
		return rest.ErrCut
	}
	return nil
}

func (w *restWatch) Answered(r *http.Request, c rest.Call, code int) {
	w.done(r, audit.Sent, code, "")
	w.watch.Faults.At(r.Context(), fault.Answered, w.describe(r, c))
}

func (w *restWatch) event(r *http.Request) *audit.Event {
	e, _ := w.events.Load(r)
	return e.(*audit.Event)
}

func (w *restWatch) done(r *http.Request, fate audit.Fate, code int, detail string) {
	e := w.event(r)
	w.events.Delete(r)
	e.Update(func(record *audit.Record) {
		if code != 0 {
			record.Code = strconv.Itoa(code)
		}
		record.Detail = detail
	})
	e.Done(fate)
}

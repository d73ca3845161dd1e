package watch

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// httpWatch watches the calls of a face over HTTP.
type httpWatch struct {
	watch  *Watch
	cut    error    // what the face takes for a connection that has been cut
	events sync.Map // *http.Request to *audit.Event, of the calls that are not over
}

func (w *httpWatch) receive(r *http.Request, c fault.Call) error {
	e := w.watch.begin(c)
	w.events.Store(r, e)
	return w.at(r, fault.Receive, c, audit.Cut)
}

func (w *httpWatch) applied(r *http.Request, c fault.Call) error {
	e := w.event(r)
	e.Update(func(record *audit.Record) { record.Object = c.Object }) // a body may name what the path does not
	return w.at(r, fault.Applied, c, audit.Withheld)
}

// at asks the rules. An error is the answer, and the call's record is then complete.
func (w *httpWatch) at(r *http.Request, phase fault.Phase, c fault.Call, kept audit.Fate) error {
	e := w.event(r)
	v := w.watch.Faults.At(r.Context(), phase, c)
	e.Update(func(record *audit.Record) { record.Rules = append(record.Rules, v.Fired...) })
	switch {
	case v.Reset:
		w.done(r, kept, 0, "")
		return w.cut
	case v.HTTP != nil:
		w.done(r, audit.Sent, v.HTTP.Code, v.HTTP.Message)
		return &refusal.Error{Reason: refusal.Reason(v.HTTP.Reason), Message: cmp.Or(v.HTTP.Message, v.HTTP.Reason), Status: v.HTTP.Code}
	case r.Context().Err() != nil:
		w.done(r, audit.Cut, 0, "")
		return w.cut
	}
	return nil
}

func (w *httpWatch) answered(r *http.Request, c fault.Call, code int) {
	w.done(r, audit.Sent, code, "")
	w.watch.Faults.At(r.Context(), fault.Answered, c)
}

func (w *httpWatch) event(r *http.Request) *audit.Event {
	e, _ := w.events.Load(r)
	return e.(*audit.Event)
}

func (w *httpWatch) done(r *http.Request, fate audit.Fate, code int, detail string) {
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

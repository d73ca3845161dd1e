package watch

import (
	"cmp"
	"context"
	"net/http"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/rest"
)

// REST watches the calls of the REST face.
func (w *Watch) REST() rest.Watcher { return restWatch{&httpWatch{watch: w, cut: rest.ErrCut}} }

type restWatch struct{ *httpWatch }

func (restWatch) describe(r *http.Request, c rest.Call) fault.Call {
	call := fault.Call{Service: "rest", Method: c.Method, Principal: c.Principal, Job: c.Job, Remote: r.RemoteAddr}
	if c.Table.Table != "" {
		call.Table = c.Table.Path()
	}
	return call
}

func (w restWatch) Receive(r *http.Request, c rest.Call) error { return w.receive(r, w.describe(r, c)) }

func (w restWatch) Applied(r *http.Request, c rest.Call, _ error) error {
	return w.applied(r, w.describe(r, c))
}

func (w restWatch) Answered(r *http.Request, c rest.Call, code int) {
	w.answered(r, w.describe(r, c), code)
}

// Job takes a job past the fault rules in a state that it has got into, and holds it as long as they say. An error is what the
// job fails with. The log hears of it where a rule fired.
func (w *Watch) Job(ctx context.Context, j rest.JobState) error {
	c := fault.Call{Service: "job", Method: j.Method, Job: j.ID, JobType: j.Type, Principal: j.Principal}
	if j.Table.Table != "" {
		c.Table = j.Table.Path()
	}
	v := w.Faults.At(ctx, fault.Receive, c)
	if len(v.Fired) == 0 {
		return nil
	}
	e := w.Audit.Begin(audit.Record{RPC: j.Method, Job: j.Name, Principal: j.Principal, Table: c.Table, Rules: v.Fired})
	defer e.Done(audit.Sent)
	if v.HTTP == nil {
		return nil
	}
	failed := &refusal.Error{Reason: refusal.Reason(v.HTTP.Reason), Message: cmp.Or(v.HTTP.Message, v.HTTP.Reason), Status: v.HTTP.Code}
	e.Update(func(r *audit.Record) { r.Code, r.Detail = v.HTTP.Reason, failed.Message })
	return failed
}

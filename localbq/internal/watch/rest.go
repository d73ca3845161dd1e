package watch

import (
	"net/http"

	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/rest"
)

// REST watches the calls of the REST face.
func (w *Watch) REST() rest.Watcher { return restWatch{&httpWatch{watch: w, cut: rest.ErrCut}} }

type restWatch struct{ *httpWatch }

func (restWatch) describe(r *http.Request, c rest.Call) fault.Call {
	call := fault.Call{Service: "rest", Method: c.Method, Principal: c.Principal, Remote: r.RemoteAddr}
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

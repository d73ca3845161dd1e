package watch

import (
	"net/http"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
	"github.com/millrace-dev/millrace/localbq/internal/gcs"
)

// GCS watches the calls of the Cloud Storage face.
func (w *Watch) GCS() gcs.Watcher { return gcsWatch{&httpWatch{watch: w, cut: gcs.ErrCut}} }

type gcsWatch struct{ *httpWatch }

func (gcsWatch) describe(r *http.Request, c gcs.Call) fault.Call {
	return fault.Call{Service: "gcs", Method: c.Method, Principal: c.Principal, Object: c.Object, Remote: r.RemoteAddr}
}

func (w gcsWatch) Receive(r *http.Request, c gcs.Call) error { return w.receive(r, w.describe(r, c)) }

func (w gcsWatch) Applied(r *http.Request, c gcs.Call) error { return w.applied(r, w.describe(r, c)) }

func (w gcsWatch) Answered(r *http.Request, c gcs.Call, code int) {
	w.answered(r, w.describe(r, c), code)
}

func (w gcsWatch) Broken(r *http.Request, _ gcs.Call) { w.done(r, audit.Cut, 0, "") }

package objects_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

func TestExists(t *testing.T) {
	t.Parallel()
	p := setup(t)
	if err := p.put(t.Context(), "gs://staged/o", []byte("x")); err != nil {
		t.Fatal(err)
	}
	p.faults(localbq.Fault{Match: localbq.FaultMatch{Method: "objects.get", Object: "gs://staged/o"}, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}},
		localbq.Fault{Match: localbq.FaultMatch{Method: "objects.get", Object: "gs://staged/denied"}, Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "forbidden"}}})
	for uri, want := range map[string]bool{"gs://staged/o": true, "gs://staged/none": false, "gs://nosuch/o": false} {
		if there, err := p.store.Exists(t.Context(), uri); there != want || err != nil {
			t.Errorf("%s: %v, %v", uri, there, err)
		}
	}
	if there, err := p.store.Exists(t.Context(), "gs://staged/denied"); there || err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("denied: %v, %v", there, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.store.Exists(ended, "gs://staged/o"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if _, err := p.store.Exists(t.Context(), "gs://staged/*"); err == nil {
		t.Error("a pattern is an object")
	}
	p.bq.Faults().MustAllFire(t)
}

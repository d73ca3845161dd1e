// Package admin is the HTTP interface to a local BigQuery's own machinery, under /local/v1/: the audit log, fault rules,
// barriers, denials, the clock and the modes of tables. Answers are JSON; refusals are {"error": message}.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/fault"
)

// Deps are what the interface works on.
type Deps struct {
	Faults *fault.Rules
	Clock  clock.Clock
	// WriteAudit exports the audit log.
	WriteAudit func(io.Writer) (int64, error)
	// Check runs all checks of the audit log on a table and answers something that marshals.
	Check func(table string) (any, error)
	// SetMode sets a table's mode by name.
	SetMode func(table, mode string) error
	// ApplyChanges brings a table's base up to date with its changes.
	ApplyChanges func(table string) error
	// Denials answers what callers are refused, and SetDenials reads what they are to be refused from now on.
	Denials    func() any
	SetDenials func(text []byte) error
}

// New makes the handler of everything under /local/v1/.
func New(d Deps) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /local/v1/audit", d.audit)
	mux.HandleFunc("GET /local/v1/audit/{table}", d.check)
	mux.HandleFunc("GET /local/v1/faults", d.listFaults)
	mux.HandleFunc("POST /local/v1/faults", d.addFaults)
	mux.HandleFunc("DELETE /local/v1/faults", d.clearFaults)
	mux.HandleFunc("POST /local/v1/faults/{name}/release", d.releaseFault)
	mux.HandleFunc("GET /local/v1/denials", d.listDenials)
	mux.HandleFunc("PUT /local/v1/denials", d.setDenials)
	mux.HandleFunc("GET /local/v1/barriers/next", d.nextBarrier)
	mux.HandleFunc("POST /local/v1/barriers/{id}/release", d.barrier((*fault.Barrier).Release))
	mux.HandleFunc("POST /local/v1/barriers/{id}/cut", d.barrier((*fault.Barrier).Cut))
	mux.HandleFunc("GET /local/v1/clock", d.now)
	mux.HandleFunc("POST /local/v1/clock/advance", d.advance)
	mux.HandleFunc("PUT /local/v1/tables/{table}/mode", d.mode)
	mux.HandleFunc("POST /local/v1/tables/{table}/changes/apply", d.applyChanges)
	mux.HandleFunc("/local/v1/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no admin method %s %s", r.Method, r.URL.Path))
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
}

func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// body reads a request's JSON, of at most 1 MiB, and refuses unknown keys.
func body(r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// audit answers the log as JSON lines.
func (d *Deps) audit(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if _, err := d.WriteAudit(w); err != nil {
		panic(http.ErrAbortHandler) // half a log must not look like a whole one
	}
}

func (d *Deps) check(w http.ResponseWriter, r *http.Request) {
	report, err := d.Check(r.PathValue("table"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, report)
}

func (d *Deps) listFaults(w http.ResponseWriter, _ *http.Request) { answer(w, d.Faults.List()) }

func (d *Deps) addFaults(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	rules, err := fault.ParseRules(raw)
	if err == nil {
		err = d.Faults.Add(rules...)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, d.Faults.List())
}

func (d *Deps) clearFaults(w http.ResponseWriter, _ *http.Request) {
	d.Faults.Clear()
	answer(w, d.Faults.List())
}

func (d *Deps) releaseFault(w http.ResponseWriter, r *http.Request) {
	if err := d.Faults.Release(r.PathValue("name")); err != nil {
		refuse(w, http.StatusNotFound, err)
		return
	}
	answer(w, d.Faults.List())
}

func (d *Deps) listDenials(w http.ResponseWriter, _ *http.Request) { answer(w, d.Denials()) }

func (d *Deps) setDenials(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = d.SetDenials(text)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	d.listDenials(w, r)
}

// maxPoll is how long a poll for a barrier waits when it does not say.
const maxPoll = 30 * time.Second

// nextBarrier waits for a held call, up to ?timeout=; 204 says that none came.
func (d *Deps) nextBarrier(w http.ResponseWriter, r *http.Request) {
	wait := maxPoll
	if s := r.URL.Query().Get("timeout"); s != "" {
		var err error
		if wait, err = time.ParseDuration(s); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	b, err := d.Faults.NextBarrier(ctx)
	if err != nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(w, b)
}

// barrier lets a held call go on, by release or cut.
func (d *Deps) barrier(end func(*fault.Barrier)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b *fault.Barrier
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err == nil {
			b, err = d.Faults.HeldAt(id)
		}
		if err != nil {
			refuse(w, http.StatusNotFound, err)
			return
		}
		end(b)
		answer(w, b)
	}
}

func (d *Deps) now(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]time.Time{"now": d.Clock.Now().UTC()})
}

// lastYear is the last that timestamps can show (RFC 3339).
const lastYear = 9999

// advance moves a manual clock.
func (d *Deps) advance(w http.ResponseWriter, r *http.Request) {
	var by struct {
		By fault.Duration `json:"by"`
	}
	if err := body(r, &by); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	manual, ok := d.Clock.(*clock.Manual)
	if !ok {
		refuse(w, http.StatusConflict, fmt.Errorf("the clock runs by itself: start the service with a manual one to advance it"))
		return
	}
	if at := manual.Now().Add(time.Duration(by.By)); by.By < 0 || at.Year() > lastYear {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the clock goes forwards, until the end of the year %d: by is %q", lastYear, time.Duration(by.By)))
		return
	}
	manual.Advance(time.Duration(by.By))
	d.now(w, r)
}

func (d *Deps) mode(w http.ResponseWriter, r *http.Request) {
	var mode struct {
		Mode string `json:"mode"`
	}
	err := body(r, &mode)
	if err == nil {
		err = d.SetMode(r.PathValue("table"), mode.Mode)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, mode)
}

func (d *Deps) applyChanges(w http.ResponseWriter, r *http.Request) {
	if err := d.ApplyChanges(r.PathValue("table")); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

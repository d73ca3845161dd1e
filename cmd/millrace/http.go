package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/internal/telemetry"
	"github.com/millrace-dev/millrace/stream"
)

// watcher shows a running job over HTTP. It has no way to change anything.
type watcher struct {
	meters *telemetry.Meter
	server *http.Server
	served chan error
}

// watch starts to serve on addr; with "" it counts nothing and serves nothing.
func (a *app) watch(ctx context.Context, addr string, handle *engine.Handle) (*watcher, error) {
	if addr == "" {
		return &watcher{}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback(addr))
	if err != nil {
		return nil, usagef("--http: %w", err)
	}
	meters, err := telemetry.New()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	w := &watcher{meters: meters, served: make(chan error, 1)}
	w.server = &http.Server{Handler: w.routes(handle), ReadHeaderTimeout: 10 * time.Second}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		a.say("millrace: %s can be reached from other machines, without a password\n", l.Addr())
	}
	a.say("millrace: http://%s/metrics /healthz /readyz /api/job\n", l.Addr())
	go func() { w.served <- w.server.Serve(l) }() // ends with close
	return w, nil
}

func (w *watcher) routes(handle *engine.Handle) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", w.meters.Handler())
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { rw.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if s := handle.Status().State; s != engine.Running {
			http.Error(rw, s.String(), http.StatusServiceUnavailable)
			return
		}
		rw.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /api/job", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(jobStatus(handle.Status()))
	})
	return mux
}

func (w *watcher) meter() stream.Meter {
	if w.meters == nil {
		return nil
	}
	return w.meters
}

func (w *watcher) close() error {
	if w.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.server.Shutdown(ctx)
	if served := <-w.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, w.meters.Close(ctx))
}

// jobStatusJSON is what /api/job answers. Fields are added, never changed.
type jobStatusJSON struct {
	Job          string     `json:"job"`
	State        string     `json:"state"`
	Started      time.Time  `json:"started"`
	Read         int64      `json:"read"`
	Written      int64      `json:"written"`
	DeadLettered int64      `json:"dead_lettered"`
	Skipped      int64      `json:"skipped"`
	Failed       int64      `json:"failed"`
	Buffered     int64      `json:"buffered"`
	Bytes        int64      `json:"bytes"`
	InputBytes   int64      `json:"input_bytes"`
	TotalBytes   int64      `json:"total_bytes,omitempty"`
	Lanes        []laneJSON `json:"lanes"`
	Checkpoint   int64      `json:"checkpoint"`
	Checkpoints  int        `json:"checkpoints"`
	ResumedFrom  int64      `json:"resumed_from,omitempty"`
	Restarts     int        `json:"restarts"`
	LastFailure  string     `json:"last_failure,omitempty"`
}

func jobStatus(s engine.Status) jobStatusJSON {
	j := jobStatusJSON{Job: s.Job, State: s.State.String(), Started: s.Started, Read: s.Tally.Read, Written: s.Tally.Written,
		DeadLettered: s.Tally.DeadLettered, Skipped: s.Tally.Skipped, Failed: s.Tally.Failed, Buffered: s.Tally.Lost(), Bytes: s.Tally.Bytes,
		InputBytes: s.InputBytes, TotalBytes: s.TotalBytes, Checkpoint: s.Checkpoint.ID, Checkpoints: s.Checkpoints,
		ResumedFrom: s.ResumedFrom, Restarts: s.Restarts, Lanes: lanes(s.Lanes)}
	if s.LastFailure != nil {
		j.LastFailure = s.LastFailure.Error()
	}
	return j
}

type laneJSON struct {
	Lane     int    `json:"lane"`
	Doing    string `json:"doing"`
	Split    string `json:"split,omitempty"`
	Position int64  `json:"position"`
	Read     int64  `json:"read"`
}

func lanes(all []engine.LaneStatus) []laneJSON {
	out := make([]laneJSON, len(all))
	for i, l := range all {
		out[i] = laneJSON{Lane: l.Lane, Doing: l.Doing.String(), Split: l.Split, Position: l.Position, Read: l.Tally.Read}
	}
	return out
}

package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/internal/telemetry"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/stream"
)

// httpFlags say where a running job can be watched, and by whom it can be steered.
type httpFlags struct {
	addr     string
	tokenEnv string
	hosts    []string
}

func (f *httpFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.addr, "http", "", "`address` to serve /metrics, /healthz, /readyz and /api/job on, such as :9090; loopback unless a host is given")
	fs.StringVar(&f.tokenEnv, "http-token-env", "", "`name` of the environment variable with the token that POST /api/savepoint and /api/stop take; without it they are refused")
	fs.StringArrayVar(&f.hosts, "http-allow-host", nil, "a `name` with dots that --http may be called by, again for each; addresses and localhost always may")
}

// token is what those who may steer the job say, "" when nobody may.
func (f *httpFlags) token() (string, error) {
	if f.addr == "" && (f.tokenEnv != "" || len(f.hosts) > 0) {
		return "", usagef("--http-token-env and --http-allow-host go with --http")
	}
	if f.tokenEnv == "" {
		return "", nil
	}
	token := strings.TrimSpace(os.Getenv(f.tokenEnv))
	if token == "" {
		return "", usagef("--http-token-env %s: the environment variable is empty or not there", f.tokenEnv)
	}
	return token, nil
}

// watcher shows a running job over HTTP.
type watcher struct {
	name   string // the job's, while it has not begun
	handle *engine.Handle
	meters *telemetry.Meter
	server *http.Server
	served chan error
	shown  atomic.Pointer[job.Pipeline] // nil until it is made ready
}

// watch starts to serve; without an address it counts nothing and serves nothing.
func (a *app) watch(ctx context.Context, f *httpFlags, name string, handle *engine.Handle) (*watcher, error) {
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	if f.addr == "" {
		return &watcher{}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback(f.addr))
	if err != nil {
		return nil, usagef("--http: %w", err)
	}
	meters, err := telemetry.New()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	w := &watcher{name: name, handle: handle, meters: meters, served: make(chan error, 1)}
	host, _, _ := net.SplitHostPort(f.addr)
	w.server = &http.Server{
		Handler:           &webGuard{append(f.hosts, host), w.routes(token)},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		a.say("millrace: %s can be reached from other machines, and shows the job to everybody there\n", l.Addr())
	}
	a.say("millrace: http://%s/metrics /healthz /readyz /api/job\n", l.Addr())
	go func() { w.served <- w.server.Serve(l) }() // ends with close
	return w, nil
}

func (w *watcher) routes(token string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", w.meters.Handler())
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { rw.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if s := w.handle.Status().State; s != engine.Running {
			http.Error(rw, s.String(), http.StatusServiceUnavailable)
			return
		}
		rw.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /api/job", func(rw http.ResponseWriter, _ *http.Request) {
		s := w.handle.Status()
		s.Job = cmp.Or(s.Job, w.name)
		tables, reading := w.reports()
		answer(rw, http.StatusOK, jobStatus(s, tables, reading))
	})
	c := &control{w.handle, token}
	mux.HandleFunc("POST /api/savepoint", c.withToken(c.savepoint))
	mux.HandleFunc("POST /api/stop", c.withToken(c.stop))
	return mux
}

// show adds what the job reads and what has become of its tables, once it is ready.
func (w *watcher) show(p *job.Pipeline) { w.shown.Store(p) }

// reports are what the tables have come to, and the read of BigQuery, nil where there is none.
func (w *watcher) reports() ([]tableReport, *bigquery.SourceReport) {
	if p := w.shown.Load(); p != nil {
		return p.Tables(), p.Reading()
	}
	return nil, nil
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

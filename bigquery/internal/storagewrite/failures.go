package storagewrite

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
)

// failures is what becomes of a lane's records, appends that fail among it.
type failures struct {
	*outcome.Lane
	m *meters
}

func newFailures(ctx context.Context, cfg *Config) (*failures, error) {
	method := "default"
	if cfg.Buffered {
		method = "exactly-once"
	}
	l, err := outcome.NewLane(ctx, outcome.Config{Failures: cfg.Failures, Ledger: cfg.Ledger, PerDestinationMetrics: cfg.PerDestinationMetrics,
		Method: method, Job: cfg.Job, Lane: cfg.Lane, Meter: cfg.Meter, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return &failures{l, newMeters(l.Meters, cfg.Buffered)}, nil
}

// appendFailed counts an append that failed, whether or not it is mended later.
func (f *failures) appendFailed(p *outcome.Place, v *verdict) {
	f.m.appendError(v.codeName())
	p.Page.AppendFailed(outcome.Failure{At: time.Now().UTC(), Code: v.codeName(), Text: v.err.Error()})
}

// appendedAgain counts an append that was sent again to mend a failed one.
func (f *failures) appendedAgain(p *outcome.Place) {
	f.m.appendRetries.Add(1)
	p.Page.AppendedAgain()
}

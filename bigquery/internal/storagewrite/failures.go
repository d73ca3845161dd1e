package storagewrite

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// place is a destination with what is counted about it.
type place struct {
	dst  table.Destination
	name string
	page *page

	sent, failed stream.Counter // nil unless metrics go by destination
}

// Destination is what the place stands for.
func (p *place) Destination() table.Destination { return p.dst }

// failures is what becomes of records that are not written: those that are skipped, and those that are wrong by
// themselves. It belongs to one lane.
type failures struct {
	handler stream.FailureHandler
	m       *meters
	ledger  *Ledger
	places  bool // metrics go by destination
	tally   stream.Tally
}

// newFailures makes the handler first of all, so that whatever fails later can be handed to it.
func newFailures(ctx context.Context, cfg *Config) (*failures, error) {
	h, err := cfg.Failures.NewHandler(ctx, stream.HandlerContext{Job: cfg.Job, Lane: cfg.Lane, Meter: cfg.Meter, Log: cfg.Log})
	if err != nil {
		return nil, fmt.Errorf("failure handler: %w", err)
	}
	return &failures{handler: h, m: newMeters(cfg.Meter, cfg.Job, cfg.Lane, cfg.Buffered), ledger: cfg.Ledger, places: cfg.PerDestinationMetrics}, nil
}

// place checks that dst can be a table's name.
func (f *failures) place(dst table.Destination) (place, error) {
	if err := dst.Validate(); err != nil {
		return place{}, err
	}
	p := place{dst: dst, name: dst.String(), page: f.ledger.page(dst)}
	if f.places {
		p.sent, p.failed = f.m.destination(p.name)
	}
	return p, nil
}

// Skip counts a record that is to be written nowhere.
func (f *failures) Skip() {
	f.m.recordsSkipped.Add(1)
	f.tally.Skipped++
}

// reject hands a record that is wrong by itself to the failure handler. p is nil for one that could not be routed.
func (f *failures) reject(ctx context.Context, p *place, r *stream.FailedRecord) error {
	r.Connector, r.Destination = Connector, stream.Unresolved
	if p != nil {
		r.Destination = p.name
		if p.failed != nil {
			p.failed.Add(1)
		}
	}
	f.m.sendErrors.Add(1)
	if err := f.handler.Handle(ctx, r); err != nil {
		f.tally.Failed++
		return err
	}
	f.tally.DeadLettered++
	if p != nil {
		p.page.deadLettered.Add(1)
	}
	return nil
}

// appendFailed counts an append that failed, whether or not it is mended later.
func (f *failures) appendFailed(p *place, v *verdict) {
	f.m.appendError(v.codeName())
	p.page.failed(v)
}

// appendedAgain counts an append that was sent again to mend a failed one.
func (f *failures) appendedAgain(p *place) {
	f.m.appendRetries.Add(1)
	p.page.appendRetries.Add(1)
}

func (f *failures) flush(ctx context.Context) error {
	if err := f.handler.Flush(ctx); err != nil {
		return fmt.Errorf("flush the failure handler: %w", err)
	}
	return nil
}

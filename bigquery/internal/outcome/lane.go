package outcome

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Connector is the name that failed records carry.
const Connector = "bigquery"

// Config is what a Lane needs.
type Config struct {
	Failures stream.FailurePolicy
	Ledger   *Ledger

	// PerDestinationMetrics adds series for each destination, which stay for the life of the process.
	PerDestinationMetrics bool

	Method string // as metrics name it
	Job    string
	Lane   int
	Meter  stream.Meter
	Log    *slog.Logger
}

// Lane is what becomes of the records of one writer: those that are written, those that are skipped, and those that are wrong
// by themselves. It belongs to the writer's goroutine.
type Lane struct {
	*Meters
	handler stream.FailureHandler
	ledger  *Ledger
	places  bool // metrics go by destination
	tally   stream.Tally
}

// NewLane makes the failure handler first of all, so that whatever fails later can be handed to it.
func NewLane(ctx context.Context, c Config) (*Lane, error) {
	h, err := c.Failures.NewHandler(ctx, stream.HandlerContext{Job: c.Job, Lane: c.Lane, Meter: c.Meter, Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("failure handler: %w", err)
	}
	return &Lane{Meters: newMeters(c.Meter, c.Job, c.Lane, c.Method), handler: h, ledger: c.Ledger, places: c.PerDestinationMetrics}, nil
}

// Place is a destination with what is counted about it.
type Place struct {
	Dst  table.Destination
	Name string // of Dst
	Page *Page

	sent, failed stream.Counter // nil unless metrics go by destination
}

// Destination is what the place stands for.
func (p *Place) Destination() table.Destination { return p.Dst }

// Place checks that dst can be a table's name.
func (l *Lane) Place(dst table.Destination) (Place, error) {
	if err := dst.Validate(); err != nil {
		return Place{}, err
	}
	p := Place{Dst: dst, Name: dst.String(), Page: l.ledger.Page(dst)}
	if l.places {
		p.sent, p.failed = l.destination(p.Name)
	}
	return p, nil
}

// Sent counts rows that are on their way. bytes are added to those that were sent: 0 where they are counted apart.
func (l *Lane) Sent(p *Place, rows, bytes int) {
	l.recordsSent.Add(int64(rows))
	l.BytesSent.Add(int64(bytes))
	if p.sent != nil {
		p.sent.Add(int64(rows))
	}
}

// Written counts rows that are where a failure cannot lose them.
func (l *Lane) Written(p *Place, rows, bytes int) {
	l.tally.Written += int64(rows)
	l.tally.Bytes += int64(bytes)
	p.Page.rows.Add(int64(rows))
	p.Page.bytes.Add(int64(bytes))
}

// Skip counts a record that is to be written nowhere.
func (l *Lane) Skip() {
	l.recordsSkipped.Add(1)
	l.tally.Skipped++
}

// Reject hands a record that is wrong by itself to the failure handler. p is nil for one that could not be routed.
func (l *Lane) Reject(ctx context.Context, p *Place, r *stream.FailedRecord) error {
	r.Connector, r.Destination = Connector, stream.Unresolved
	if p != nil {
		r.Destination = p.Name
		if p.failed != nil {
			p.failed.Add(1)
		}
	}
	l.sendErrors.Add(1)
	if err := l.handler.Handle(ctx, r); err != nil {
		l.tally.Failed++
		return err
	}
	l.tally.DeadLettered++
	if p != nil {
		p.Page.deadLettered.Add(1)
	}
	return nil
}

// Tally says what became of the records so far.
func (l *Lane) Tally() stream.Tally { return l.tally }

// Flush returns once the failure handler has everything where a failure cannot lose it.
func (l *Lane) Flush(ctx context.Context) error {
	if err := l.handler.Flush(ctx); err != nil {
		return fmt.Errorf("flush the failure handler: %w", err)
	}
	return nil
}

// Close closes the failure handler. It comes last.
func (l *Lane) Close() error { return l.handler.Close() }

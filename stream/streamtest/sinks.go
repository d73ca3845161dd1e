package streamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace-dev/millrace/stream"
)

// SinkOptions are common to the sinks of a World. The zero value routes by row to three destinations, takes every
// record, and ends the job at a bad one.
type SinkOptions struct {
	// Bad records are handed to Failures; Skip records are dropped.
	Bad, Skip func(Item) bool
	Failures  stream.FailurePolicy
	// Batch is how many rows of a destination are buffered at most; 0 is 4.
	Batch int
	// Scope is that of the committer.
	Scope stream.CommitScope
}

// Destination is where an item is written to.
func Destination(i Item) string { return "table-" + strconv.FormatInt(i.Row%3, 10) }

// OriginalBytes implements stream.Original.
func (i Item) OriginalBytes() []byte { return []byte(i.String()) }

// ParseItem reads what Item.String wrote.
func ParseItem(s string) (i Item, err error) {
	if _, err := fmt.Sscanf(s, "%d.%d", &i.Row, &i.Part); err == nil {
		return i, nil
	}
	i = Item{}
	i.Row, err = strconv.ParseInt(s, 10, 64)
	return i, err
}

// intake is the part of a writer before its buffers: it sorts out what is not to be written, counts, and batches by
// destination.
type intake struct {
	o       SinkOptions
	handler stream.FailureHandler
	tally   stream.Tally
	pending map[string][]Item
	send    func(destination string, items []Item) error
}

func newIntake(ctx context.Context, o SinkOptions, wc stream.WriterContext) (*intake, error) {
	if o.Failures == nil {
		o.Failures = stream.FailJob()
	}
	if o.Batch == 0 {
		o.Batch = 4
	}
	h, err := o.Failures.NewHandler(ctx, stream.HandlerContext{Job: wc.Job, Lane: wc.Lane, Meter: wc.Meter, Log: wc.Log})
	if err != nil {
		return nil, err
	}
	return &intake{o: o, handler: h, pending: map[string][]Item{}}, nil
}

func (n *intake) Write(ctx context.Context, r *stream.Record[Item]) error {
	ok, err := n.admit(ctx, r)
	if !ok {
		return err
	}
	d := Destination(r.Value)
	n.pending[d] = append(n.pending[d], r.Value)
	if len(n.pending[d]) < n.o.Batch {
		return nil
	}
	return n.sendPending(d)
}

// admit says whether a record is to be written.
func (n *intake) admit(ctx context.Context, r *stream.Record[Item]) (bool, error) {
	switch {
	case n.o.Bad != nil && n.o.Bad(r.Value):
		err := n.handler.Handle(ctx, &stream.FailedRecord{Connector: "world", Destination: Destination(r.Value),
			Reason: "the record is bad", Original: r.Value.OriginalBytes(), At: r.At.Location()})
		if err == nil {
			n.tally.DeadLettered++
		}
		return false, err
	case n.o.Skip != nil && n.o.Skip(r.Value):
		n.tally.Skipped++
		return false, nil
	}
	return true, nil
}

func (n *intake) sendPending(destination string) error {
	items := n.pending[destination]
	if len(items) == 0 {
		return nil
	}
	if err := n.send(destination, items); err != nil {
		return err
	}
	n.tally.Written += int64(len(items))
	n.tally.Bytes += int64(16 * len(items))
	n.pending[destination] = items[:0]
	return nil
}

func (n *intake) Flush(ctx context.Context, _ bool) error {
	for _, d := range sortedKeys(n.pending) {
		if err := n.sendPending(d); err != nil {
			return err
		}
	}
	return n.handler.Flush(ctx)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (n *intake) Tally() stream.Tally { return n.tally }
func (n *intake) Close() error        { return n.handler.Close() }

// Direct is a sink with one phase: rows are visible once they are sent, and sent no later than Flush.
type Direct struct {
	World *World
	SinkOptions
}

// NewWriter implements stream.Sink.
func (d Direct) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	in, err := newIntake(ctx, d.SinkOptions, wc)
	if err != nil {
		return nil, err
	}
	in.send = func(destination string, items []Item) error {
		d.World.insert(destination, items)
		return nil
	}
	return &directWriter{in}, nil
}

type directWriter struct{ *intake }

// WriteRecords implements stream.RecordsWriter.
func (w *directWriter) WriteRecords(ctx context.Context, rs []stream.Record[Item]) (int, error) {
	for i := range rs {
		if err := w.Write(ctx, &rs[i]); err != nil {
			return i, err
		}
	}
	return len(rs), nil
}

func (w *directWriter) Prepare(context.Context, int64) ([]stream.Committable, error) { return nil, nil }
func (w *directWriter) Snapshot(context.Context, int64) ([]stream.State, error)      { return nil, nil }

// Buffered is a sink with two phases: rows are appended to streams, and a commit makes them visible. A writer that goes
// on from a state finds out at its first append whether somebody else has written behind that state, and leaves the
// stream to them if so.
type Buffered struct {
	World *World
	SinkOptions
}

// mark is a place in a stream: what a writer remembers, and what a committer makes visible.
type mark struct {
	Kind   string
	Stream string
	End    int
}

const markKind = "mark/1"

func (m mark) encode() []byte {
	m.Kind = markKind
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return data
}

func decodeMark(data []byte) (m mark, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if m.Kind != markKind {
		return m, fmt.Errorf("kind %q, want %q", m.Kind, markKind)
	}
	return m, nil
}

// NewWriter implements stream.Sink.
func (b Buffered) NewWriter(ctx context.Context, wc stream.WriterContext) (stream.Writer[Item], error) {
	in, err := newIntake(ctx, b.SinkOptions, wc)
	if err != nil {
		return nil, err
	}
	w := &bufferedWriter{intake: in, world: b.World, tables: map[string]*bufferedTable{}}
	in.send = w.append
	for _, s := range wc.States {
		m, err := decodeMark(s.Data)
		if err != nil {
			return nil, fmt.Errorf("state of %s: %w", s.Destination, err)
		}
		// Of several, any will do: what the others hold up to their marks has been prepared.
		w.tables[s.Destination] = &bufferedTable{mark: m, prepared: m, probe: true}
	}
	return w, nil
}

type bufferedWriter struct {
	*intake
	world  *World
	tables map[string]*bufferedTable
}

type bufferedTable struct {
	mark     mark // of the next row
	prepared mark
	probe    bool // nothing has been appended since the restore
}

func (w *bufferedWriter) append(destination string, items []Item) error {
	t := w.tables[destination]
	if t == nil {
		t = &bufferedTable{mark: mark{Stream: w.world.create(destination)}}
		w.tables[destination] = t
	}
	err := w.world.append(t.mark.Stream, t.mark.End, items)
	if t.probe && (errors.Is(err, errOffsetTaken) || errors.Is(err, errOffsetAhead)) {
		t.mark = mark{Stream: w.world.create(destination)}
		err = w.world.append(t.mark.Stream, 0, items)
	}
	if err != nil {
		return err
	}
	t.probe = false
	t.mark.End += len(items)
	return nil
}

func (w *bufferedWriter) Prepare(context.Context, int64) (cs []stream.Committable, _ error) {
	for _, d := range sortedKeys(w.tables) {
		if t := w.tables[d]; t.mark != t.prepared {
			cs = append(cs, stream.Committable{Key: t.mark.Stream, Data: t.mark.encode()})
			t.prepared = t.mark
		}
	}
	return cs, nil
}

func (w *bufferedWriter) Snapshot(context.Context, int64) (states []stream.State, _ error) {
	for _, d := range sortedKeys(w.tables) {
		states = append(states, stream.State{Destination: d, Data: w.tables[d].mark.encode()})
	}
	return states, nil
}

// WriteEncoded implements stream.EncodedWriter.
func (w *bufferedWriter) WriteEncoded(ctx context.Context, b stream.EncodedBatch) error {
	var batch encodedItems
	if err := json.Unmarshal(b.Data, &batch); err != nil {
		return err
	}
	if batch.Kind != itemsKind {
		return fmt.Errorf("encoded batch of kind %q, want %q", batch.Kind, itemsKind)
	}
	w.pending[b.Destination] = append(w.pending[b.Destination], batch.Items...)
	return w.sendPending(b.Destination)
}

// CommitScope implements stream.TwoPhase.
func (b Buffered) CommitScope() stream.CommitScope { return b.Scope }

// NewCommitter implements stream.TwoPhase.
func (b Buffered) NewCommitter(context.Context, stream.CommitterContext) (stream.Committer, error) {
	return bufferedCommitter{b.World}, nil
}

type bufferedCommitter struct{ world *World }

func (c bufferedCommitter) Commit(_ context.Context, cs []stream.Committable) error {
	for _, one := range cs {
		m, err := decodeMark(one.Data)
		if err != nil {
			return fmt.Errorf("committable of %s: %w", one.Key, err)
		}
		if err := c.world.flush(m.Stream, m.End); err != nil {
			return err
		}
	}
	return nil
}

func (bufferedCommitter) Close() error { return nil }

const itemsKind = "items/1"

type encodedItems struct {
	Kind  string
	Items []Item
}

// NewEncoder implements stream.Encoding.
func (b Buffered) NewEncoder(ctx context.Context, wc stream.WriterContext) (stream.Encoder[Item], error) {
	in, err := newIntake(ctx, b.SinkOptions, wc)
	if err != nil {
		return nil, err
	}
	return &itemEncoder{in}, nil
}

// itemEncoder sorts records out and batches them as a writer does, and emits the batches.
type itemEncoder struct{ in *intake }

func (e *itemEncoder) Encode(ctx context.Context, r *stream.Record[Item], emit func(stream.EncodedBatch) error) error {
	e.in.send = emitItems(emit)
	return e.in.Write(ctx, r)
}

func (e *itemEncoder) Flush(ctx context.Context, emit func(stream.EncodedBatch) error) error {
	e.in.send = emitItems(emit)
	return e.in.Flush(ctx, false)
}

func (e *itemEncoder) Close() error { return e.in.Close() }

func emitItems(emit func(stream.EncodedBatch) error) func(string, []Item) error {
	return func(destination string, items []Item) error {
		data, err := json.Marshal(encodedItems{itemsKind, items})
		if err != nil {
			return err
		}
		return emit(stream.EncodedBatch{Destination: destination, Data: data})
	}
}

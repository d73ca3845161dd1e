package engine

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/millrace-dev/millrace/stream"
)

// pipeline carries records from a batch to the writer and counts what becomes of them.
type pipeline[In, Out any] struct {
	writer  stream.Writer[Out]
	tallier stream.Tallier // the writer, nil when it does not count

	// Without a Func, records go where they are: one by one, or in runs when many is not nil.
	direct stream.Writer[In]
	many   stream.RecordsWriter[In]

	// With a Func, they go through it.
	fn      stream.Func[In, Out]
	handler stream.FailureHandler // takes the records that fn refuses
	emit    func(*stream.Record[Out]) error
	calling call[In]

	split   string             // id of the open split
	current *stream.Record[In] // being processed, for errors
	next    int                // with many: the index in the batch of the first record not taken

	tally  stream.Tally // Read, and what never reached the writer
	handed int64        // records given to the writer
	failed bool         // the record at current ended the attempt
}

// call is one call of the Func.
type call[In any] struct {
	ctx     context.Context
	in      *stream.Record[In] // nil when no call is under way
	emitted int64
	err     error // the writer's; the Func should have passed it on
}

// maxRun is how many records go to a RecordsWriter at once, about. Orders wait for a run to end, so it is bounded.
const maxRun = 512

// take consumes rows of b from row i on and returns how many.
func (p *pipeline[In, Out]) take(ctx context.Context, b *stream.Batch[In], i int) (rows int, err error) {
	if p.many != nil {
		return p.takeRun(ctx, b, i)
	}
	records, at, _ := b.At(i)
	p.countRow(records)
	for j := range records {
		r := &records[j]
		p.place(r, at)
		p.current = r
		if p.fn == nil {
			p.handed++
			err = p.direct.Write(ctx, r)
		} else {
			err = p.call(ctx, r)
		}
		if err != nil {
			return 0, err
		}
	}
	p.current = nil
	return 1, nil
}

// takeRun gives the writer the records of several rows at once.
func (p *pipeline[In, Out]) takeRun(ctx context.Context, b *stream.Batch[In], i int) (rows int, err error) {
	if i == 0 {
		p.next = 0
	}
	first, last := p.next, p.next
	for ; i+rows < b.Len() && last-first < maxRun; rows++ {
		records, at, _ := b.At(i + rows)
		p.countRow(records)
		for j := range records {
			p.place(&records[j], at)
		}
		last += len(records)
	}
	if p.next = last; first == last {
		return rows, nil
	}
	return rows, p.writeRun(ctx, b.Records()[first:last])
}

func (p *pipeline[In, Out]) writeRun(ctx context.Context, run []stream.Record[In]) error {
	p.current = &run[0]
	n, err := p.many.WriteRecords(ctx, run)
	if err == nil && n != len(run) {
		err = brokenContract("the writer wrote %d of %d records and answered no error", n, len(run))
	}
	if err != nil {
		p.current = &run[min(max(n, 0), len(run)-1)]
		return err
	}
	p.handed += int64(len(run))
	p.current = nil
	return nil
}

func (p *pipeline[In, Out]) countRow(records []stream.Record[In]) {
	if len(records) == 0 {
		p.tally.Read++
		p.tally.Skipped++
		return
	}
	p.tally.Read += int64(len(records))
}

// place fills in where the record was read, for readers that do not.
func (p *pipeline[In, Out]) place(r *stream.Record[In], at int64) {
	if r.At == (stream.Position{}) {
		r.At = stream.Position{Split: p.split, Row: at}
	}
}

// call runs the Func on one record.
func (p *pipeline[In, Out]) call(ctx context.Context, r *stream.Record[In]) error {
	p.calling = call[In]{ctx: ctx, in: r}
	err := p.fn(ctx, r, p.emit)
	p.calling.in = nil
	if p.calling.err != nil {
		return p.calling.err
	}
	outcomes := p.calling.emitted
	if refused, ok := errors.AsType[*stream.RecordError](err); ok {
		if err := p.refuse(ctx, r, refused); err != nil {
			return err
		}
		p.tally.DeadLettered++
		outcomes++
	} else if err != nil && !errors.Is(err, stream.ErrSkip) {
		return err
	}
	if outcomes == 0 {
		p.tally.Skipped++
		return nil
	}
	p.tally.Read += outcomes - 1
	return nil
}

// write is what the Func calls as emit.
func (p *pipeline[In, Out]) write(r *stream.Record[Out]) error {
	c := &p.calling
	if c.in == nil {
		return brokenContract("a Func called emit after it had returned")
	}
	if c.err != nil {
		return c.err
	}
	if r.At == (stream.Position{}) {
		r.At = c.in.At
	}
	if c.err = p.writer.Write(c.ctx, r); c.err != nil {
		return c.err
	}
	c.emitted++
	p.handed++
	return nil
}

// refuse hands a record that the Func refused to the job's failure policy.
func (p *pipeline[In, Out]) refuse(ctx context.Context, r *stream.Record[In], cause *stream.RecordError) error {
	f := &stream.FailedRecord{
		Connector:   "func",
		Destination: stream.Unresolved,
		Reason:      cause.Error(),
		Err:         cause.Err,
		At:          locate(r.At),
		Split:       r.At.Split,
	}
	if o, ok := any(r.Value).(stream.Original); ok {
		f.Original = o.OriginalBytes()
	}
	return p.handler.Handle(ctx, f)
}

// rescue is deferred around take: it turns a panic into an error, and locates either at the record being processed.
func (p *pipeline[In, Out]) rescue(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
	if *err != nil && p.current != nil {
		p.failed = true
		*err = located(*err, p.current.At)
	}
}

// flush makes everything written so far safe.
func (p *pipeline[In, Out]) flush(ctx context.Context, final bool) error {
	if err := p.writer.Flush(ctx, final); err != nil {
		return err
	}
	if p.handler != nil {
		return p.handler.Flush(ctx)
	}
	return nil
}

// soFar is the tally at any time: what is in the writer's buffers is read, and nothing else yet.
func (p *pipeline[In, Out]) soFar() stream.Tally {
	t := p.tally
	if p.tallier == nil {
		t.Written += p.handed
		return t
	}
	w := p.tallier.Tally()
	w.Read, w.Failed = 0, 0
	t.Add(w)
	return t
}

// settled is the tally after a flush, when every record must have come to something.
func (p *pipeline[In, Out]) settled() (stream.Tally, error) {
	t := p.soFar()
	if lost := t.Lost(); lost != 0 {
		return t, brokenContract("after a flush the writer accounts for %d of the %d records it was given", p.handed-lost, p.handed)
	}
	return t, nil
}

// close closes the handler. The writer is not the pipeline's.
func (p *pipeline[In, Out]) close() error {
	if p.handler == nil {
		return nil
	}
	return p.handler.Close()
}

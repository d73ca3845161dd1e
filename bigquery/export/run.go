package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/bigquery"
)

// Run reads and writes until everything is there, or ctx ends. When it fails, what has been written stays, and Open goes on from
// there; when that is nothing, nothing stays.
func (x *Export) Run(ctx context.Context) (Result, error) {
	if x.already {
		return Result{Already: true}, nil
	}
	before := x.at.Rows
	rows, _ := x.planned.Estimate()
	x.meter.start(x.planned.Streams(), len(x.order.Slots), x.order.finished(), rows, x.at)
	err := x.run(ctx)
	if err == nil {
		err = x.end(ctx)
	}
	if err != nil {
		return Result{}, errors.Join(x.explained(err), x.leave(context.WithoutCancel(ctx)))
	}
	return Result{Rows: x.at.Rows, Before: before, Bytes: x.at.Bytes + x.at.Length, Files: x.at.File + 1}, nil
}

// explained says what to do about a session that is gone.
func (x *Export) explained(err error) error {
	e, ok := errors.AsType[*bigquery.ReadError](err)
	if ok && x.place.cuts() && (errors.Is(err, bigquery.ErrSessionExpired) || e.Code == codes.NotFound) {
		return fmt.Errorf("%w: nothing can go on with this read session: remove %s to begin again", err, x.notes())
	}
	return err
}

func (x *Export) run(ctx context.Context) error {
	if x.file == nil { // everything was there but for the end
		return nil
	}
	if err := x.head(); err != nil {
		return err
	}
	x.lastNote = time.Now()
	l := lanes{planned: x.planned, order: x.order}
	return l.read(ctx, func(c *chunk, slot int) error { return x.take(ctx, c, slot) }, x.meter.ended)
}

// head begins the file, unless it has been.
func (x *Export) head() error {
	if x.at.Length > 0 {
		return nil
	}
	return x.write(x.container.head())
}

func (x *Export) write(parts ...[]byte) error {
	n, err := writeParts(x.file, parts)
	x.at.Length += n
	return err
}

// take writes a chunk. The order counts it already: until the file holds it, there is nothing to go on from.
func (x *Export) take(ctx context.Context, c *chunk, slot int) error {
	x.broken = true
	if x.file == nil {
		if err := x.beginNext(ctx); err != nil {
			return err
		}
	}
	was := x.at.Length
	if err := x.container.place(c, was); err != nil {
		return err
	}
	if err := x.write(c.parts...); err != nil {
		return err
	}
	x.broken = false
	if c.free != nil {
		c.free()
	}
	x.at.Rows += c.rows
	x.meter.chunk(slot, c.rows, x.at.Length-was, c.progress)
	if x.target.many && x.at.Length >= x.o.FileBytes {
		return x.complete(ctx)
	}
	return x.save(ctx)
}

func (x *Export) beginNext(ctx context.Context) (err error) {
	x.nextFile()
	if x.container, err = x.planned.container(); err != nil {
		return err
	}
	if x.file, err = x.place.begin(ctx, x.at.File, 0); err != nil {
		return err
	}
	return x.head()
}

// save has a mark written down beside the work, if it is time and the one before has been.
func (x *Export) save(ctx context.Context) error {
	if !x.place.cuts() || time.Since(x.lastNote) < x.o.SafeEvery || x.saving != nil && len(x.saving) == 0 {
		return nil
	}
	if err := x.saved(); err != nil {
		return err
	}
	m, err := x.mark()
	if err != nil {
		return err
	}
	x.lastNote = time.Now()
	saving, out := make(chan error, 1), x.file
	x.saving = saving
	go func() { saving <- x.keep(ctx, out, m) }() // ends when the mark has been written down; saved waits for it
	return nil
}

// keep makes a mark once the file is as safe as it says.
func (x *Export) keep(ctx context.Context, out file, m mark) error {
	if err := out.sync(); err != nil {
		return err
	}
	return x.note(ctx, m)
}

// saved waits for the mark that is being written down.
func (x *Export) saved() error {
	if x.saving == nil {
		return nil
	}
	err := <-x.saving
	x.saving = nil
	x.marked = x.marked || err == nil
	return err
}

func (x *Export) mark() (m mark, err error) {
	m = x.at
	m.Order = x.order.clone()
	m.Note, err = x.container.note()
	return m, err
}

// complete ends the file: it has its name then.
func (x *Export) complete(ctx context.Context) error {
	foot, err := x.container.foot()
	if err == nil {
		err = x.saved()
	}
	if err != nil {
		return err
	}
	x.broken = true
	if err := x.write(foot); err != nil {
		return err
	}
	out := x.file
	x.file = nil
	if err := out.finish(); err != nil {
		return err
	}
	m := x.at
	m.Complete, m.Order = true, x.order.clone()
	if err := x.note(ctx, m); err != nil {
		return err
	}
	x.broken, x.marked = false, true
	x.meter.files(x.at.File + 1)
	return x.place.publish(ctx, x.at.File)
}

// end completes the last file and takes the notes away.
func (x *Export) end(ctx context.Context) error {
	if x.file != nil {
		if err := x.complete(ctx); err != nil {
			return err
		}
	}
	return x.place.forget(ctx, x.at.File)
}

// leave makes what has been written safe after a failure, and takes everything away where that is nothing.
func (x *Export) leave(ctx context.Context) error {
	err := x.saved()
	if err == nil && x.file != nil && !x.broken && x.at.Rows > 0 && x.place.cuts() {
		var m mark
		if m, err = x.mark(); err == nil {
			err = x.keep(ctx, x.file, m)
		}
		x.marked = x.marked || err == nil
	}
	if x.marked || !x.place.cuts() {
		return err
	}
	return errors.Join(err, x.forget(ctx))
}

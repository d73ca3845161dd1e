package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Export is one read into files. Progress may be called from any goroutine, everything else from one.
type Export struct {
	target    target
	o         Options
	place     place
	planned   *planned
	order     *order
	container container
	file      file // being written; nil before and behind
	at        mark
	lastNote  time.Time
	size      int64 // of the notes
	marked    bool  // there is a mark to go on from
	broken    bool  // the file does not hold what the order says
	already   bool  // the target was complete
	meter     meter
	saving    chan error // of the mark that is being written down; nil when none is
}

// Result is what an export came to.
type Result struct {
	Rows   int64 // in all files
	Before int64 // of them, those that processes before this one wrote
	Bytes  int64 // of all files
	Files  int
	// Already says that the target was complete before, and that nothing was read. The other fields are 0 then.
	Already bool
}

// InvalidError is a fault of what was asked for, found before anything was read: options, a target that cannot be written, an
// unfinished read that cannot go on or that nobody wants to go on with.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return &InvalidError{err}
}

// Open plans a read into files, or finds the unfinished one. The target is the name of a file; a folder, or a name with a * for
// the number, which are many files; either in Cloud Storage when it begins with gs://. A file that is there is replaced when the
// read is complete; numbered files are not: ErrOccupied.
//
// In a folder a read goes on in the middle of a file. Objects of Cloud Storage are written as wholes: it goes on behind the last one
// that is complete.
//
// Faults are *InvalidError values, those of the service *bigquery.PlanError. The caller closes the Export.
func Open(ctx context.Context, from bigquery.Input, name string, o Options) (*Export, error) {
	t, err := parseTarget(name, o.Format)
	if err != nil {
		return nil, invalid(err)
	}
	if o, err = o.resolve(from, t); err != nil {
		return nil, invalid(err)
	}
	x := &Export{target: t, o: o}
	if x.place, err = placeOf(ctx, t, o.Source.Connection); err != nil {
		return nil, invalid(err)
	}
	return opened(x, x.open(ctx, from))
}

// OpenWriter plans a read into w, as one file. It cannot go on after a crash.
func OpenWriter(ctx context.Context, from bigquery.Input, w io.Writer, o Options) (*Export, error) {
	t := target{typed: "the output"}
	o, err := o.resolve(from, t)
	if o.Resume {
		err = errors.Join(err, errors.New("what is written through cannot be resumed: name a file"))
	}
	if err != nil {
		return nil, invalid(err)
	}
	x := &Export{target: t, o: o, place: pipe{w}}
	return opened(x, x.open(ctx, from))
}

func opened(x *Export, err error) (*Export, error) {
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func placeOf(ctx context.Context, t target, c bigquery.Connection) (place, error) {
	if t.bucket != "" {
		return openBucket(ctx, t, c)
	}
	return &folder{target: t}, nil
}

func (x *Export) open(ctx context.Context, from bigquery.Input) error {
	data, err := x.place.claim(ctx)
	if err != nil {
		return invalid(err)
	}
	n, there, err := readNotes(data)
	if err != nil {
		return invalid(fmt.Errorf("%w: %s: %w: remove it to begin again", ErrNotes, x.notes(), err))
	}
	if there && !x.o.Resume {
		if e := n.header.Expires; e.IsZero() || time.Now().Before(e) {
			return invalid(&UnfinishedError{x.target.typed, x.notes(), n.last.Rows, e})
		}
		there = false // nobody can go on with it
	}
	if there {
		return x.goOn(ctx, from, n)
	}
	return x.begin(ctx, from)
}

func (x *Export) notes() string { return x.target.says(x.target.notes()) }

// begin starts a read.
func (x *Export) begin(ctx context.Context, from bigquery.Input) error {
	switch name, err := x.place.occupied(ctx); {
	case err != nil:
		return invalid(err)
	case name != "" && x.o.Resume:
		x.already = true
		return nil
	case name != "" && x.target.many:
		return invalid(fmt.Errorf("%w: %s is there: name another place, or remove them", ErrOccupied, name))
	}
	err := x.place.keep(ctx, 0, nil)
	if err == nil {
		x.file, err = x.place.begin(ctx, 0, 0)
	}
	if err != nil {
		return invalid(err)
	}
	if x.planned, err = x.plan(ctx, from, x.o.Lanes, nil); err != nil {
		return errors.Join(err, x.forget(ctx))
	}
	x.order = newOrder(x.planned.Streams(), x.o.Lanes)
	return x.note(ctx, header{Version: notesVersion, Facts: x.o.Facts, Lanes: x.o.Lanes, Session: x.planned.Save(), Expires: x.planned.Expires()})
}

// plan tells faults of options from those of the service.
func (x *Export) plan(ctx context.Context, from bigquery.Input, lanes int, saved []byte) (*planned, error) {
	p, err := plan(ctx, from, x.target, &x.o, lanes, saved)
	if err != nil {
		if _, ok := errors.AsType[*bigquery.PlanError](err); !ok && ctx.Err() == nil {
			err = invalid(err)
		}
		return nil, err
	}
	x.container, err = p.container()
	return p, err
}

// goOn takes up the read of the notes.
func (x *Export) goOn(ctx context.Context, from bigquery.Input, n *notes) (err error) {
	if c := n.header.differences(x.o.Facts); len(c) > 0 {
		return invalid(&ChangedError{x.target.typed, x.notes(), c})
	}
	if x.planned, err = x.plan(ctx, from, n.header.Lanes, n.header.Session); err != nil {
		return err
	}
	x.size, x.at = n.size, n.last
	x.at.Note = ""
	if x.marked = x.at.Order.Slots != nil || x.at.Complete; !x.marked {
		x.order = newOrder(x.planned.Streams(), n.header.Lanes)
	} else {
		o := x.at.Order.clone()
		x.order = &o
		err = x.order.restore(x.planned.Streams())
	}
	for _, note := range n.note {
		if err == nil && !x.at.Complete {
			err = x.container.restore(note)
		}
	}
	if err != nil {
		return invalid(fmt.Errorf("%w: %s: %w: remove it to begin again", ErrNotes, x.notes(), err))
	}
	if x.at.Complete {
		if err := x.place.publish(ctx, x.at.File); err != nil {
			return err
		}
		if x.order.ended() {
			return nil
		}
		x.nextFile()
	}
	x.file, err = x.place.begin(ctx, x.at.File, x.at.Length)
	return invalid(err)
}

// forget takes away what there is of the read.
func (x *Export) forget(ctx context.Context) error {
	if x.file != nil {
		x.file.abandon()
		x.file = nil
	}
	return x.place.forget(context.WithoutCancel(ctx), x.at.File)
}

func (x *Export) nextFile() {
	x.at = mark{File: x.at.File + 1, Rows: x.at.Rows, Bytes: x.at.Bytes + x.at.Length}
}

// note writes a line of the notes.
func (x *Export) note(ctx context.Context, v any) error {
	line, err := noteLine(v)
	if err != nil {
		return err
	}
	if err := x.place.keep(ctx, x.size, line); err != nil {
		return err
	}
	x.size += int64(len(line))
	return nil
}

// Session is the name of the read session, Table what is read: the table, or the result of the query. Both are empty when there is
// nothing to read.
func (x *Export) Session() (name string, t table.Destination) {
	if x.planned == nil {
		return "", t
	}
	return x.planned.Name(), x.planned.Table()
}

// Resumable reports whether what has been written so far is kept for Open to go on from.
func (x *Export) Resumable() bool { return x.marked && x.target.typed != "" }

// Progress is how far Run is.
func (x *Export) Progress() Progress { return x.meter.progress() }

// Close gives back what the Export holds. It does not undo anything, and may be repeated.
func (x *Export) Close() error {
	err := x.saved()
	if x.file != nil {
		x.file.abandon()
		x.file = nil
	}
	return errors.Join(err, x.place.Close())
}

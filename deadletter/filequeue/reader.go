package filequeue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
)

// What one fetch hands over, at most, and at least one letter.
const (
	fetchLetters = 1000
	fetchBytes   = 1 << 20
)

// reader reads parts of files, one at a time.
type reader struct {
	replay *Replay
	open   *openPart
}

// openPart is the part being read.
type openPart struct {
	part
	id    string
	plan  *plan
	f     *os.File
	lines lines
	place *place

	failure error // comes when what was read before it is handed over
}

// Open opens the file of a part and goes to its position.
func (r *reader) Open(_ context.Context, s stream.Split) error {
	p, err := parsePart(s.Data)
	if err != nil {
		return fmt.Errorf("dead letters: split %s: %w", s.ID, err)
	}
	plan := r.replay.plans[p.Print]
	if plan == nil {
		return lasting(fmt.Errorf("dead letters: split %s: the file is not among those that were named", s.ID))
	}
	f, err := os.Open(plan.path)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	o := &openPart{part: p, id: s.ID, plan: plan, f: f, place: &place{path: plan.path, line: p.Line}}
	if err := o.at(s.Position); err != nil {
		return errors.Join(fmt.Errorf("dead letters: %s: %w", plan.path, err), f.Close())
	}
	r.open = o
	return nil
}

// at goes to a position, over the lines before it, which have numbers.
func (o *openPart) at(position int64) error {
	if _, err := o.f.Seek(o.Start, io.SeekStart); err != nil {
		return err
	}
	o.lines = lines{in: bufio.NewReaderSize(o.f, 64<<10), at: o.Start, line: o.Line}
	for o.lines.at < position {
		l, err := o.lines.next()
		if err != nil || l.torn {
			return o.short(err)
		}
		o.place.add(l.at, l.number)
	}
	return nil
}

func (o *openPart) short(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return lasting(errors.New("the file is shorter than it was"))
	}
	return err
}

// Fetch hands over the next letters. Lines that are not replayed are rows without records.
func (r *reader) Fetch(ctx context.Context, b *stream.Batch[files.Record]) error {
	b.Reset()
	o := r.open
	if o == nil {
		return errors.New("dead letters: fetch without an open split")
	}
	for o.failure == nil && o.lines.at < o.End && b.Len() < fetchLetters && b.Bytes < fetchBytes {
		if err := ctx.Err(); err != nil && b.Len() == 0 {
			return err
		} else if err != nil {
			return nil
		}
		o.failure = o.take(b, r.replay)
	}
	switch {
	case b.Len() > 0:
		return nil
	case o.failure != nil:
		return fmt.Errorf("dead letters: read %s: %w", o.plan.path, o.failure)
	}
	r.open = nil
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("dead letters: close %s: %w", o.plan.path, err)
	}
	return io.EOF
}

func (o *openPart) take(b *stream.Batch[files.Record], r *Replay) error {
	l, err := o.lines.next()
	if errors.Is(err, io.EOF) || err == nil && (l.torn || l.next > o.End) {
		return o.short(nil)
	}
	if err != nil || l.blank() {
		return err
	}
	o.place.add(l.at, l.number)
	if o.plan.skips(l.at) {
		b.Row(l.at, l.next)
		b.Bytes += l.next - l.at
		return nil
	}
	e := l.entry()
	if e.Err != nil {
		return lasting(fmt.Errorf("line %d: %w: it was one when the file was looked through", e.Line, e.Err))
	}
	b.Row(l.at, l.next)
	b.Bytes += l.next - l.at
	b.Emit(stream.Record[files.Record]{
		Value: r.record(&e.Letter),
		At:    stream.Position{Split: o.id, Row: l.at, Locator: o.place},
	})
	return nil
}

// Close closes the open part.
func (r *reader) Close() error {
	o := r.open
	r.open = nil
	if o == nil {
		return nil
	}
	return o.f.Close()
}

// place tells on which line a letter is. It remembers where the lines of one part begin.
type place struct {
	path string
	line int64 // number of the line before the part
	at   []int64
	over []int64 // their numbers
}

func (p *place) add(at, number int64) {
	p.at = append(p.at, at)
	p.over = append(p.over, number)
}

// Locate names the file of dead letters, and the line.
func (p *place) Locate(at stream.Position) stream.Location {
	loc := stream.Location{Name: p.path, Row: at.Row}
	i := sort.Search(len(p.at), func(i int) bool { return p.at[i] >= at.Row })
	if i < len(p.at) && p.at[i] == at.Row {
		loc.Line = p.over[i]
	}
	return loc
}

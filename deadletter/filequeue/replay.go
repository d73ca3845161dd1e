package filequeue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
)

// Replay is a source of the records that dead letters hold, each once. It is bounded: letters that come later are not read.
//
// What has been replayed is in the state of its enumerator, which says for each file how far it went. An engine keeps that in
// its checkpoints, together with what the sink needs to commit, so that a letter is replayed as often as the sink promises:
// exactly once by an exactly-once sink. Files are known by what they hold, not by their names.
type Replay struct {
	plans  map[string]*plan // by print
	order  []string
	start  []byte // a state to go on with
	record func(l *deadletter.Letter) files.Record
	survey Survey
}

// ReplayOptions say which letters are replayed, and how.
type ReplayOptions struct {
	// Job is whose letters are replayed. Those of others are passed over.
	Job string
	// Record makes the record of a letter. By default it is the letter's record without more.
	Record func(l *deadletter.Letter) files.Record
	// State is what an enumerator of an earlier run was last, nil if there was none: what it has replayed is not replayed again.
	State []byte
}

// NewReplay looks through the files of the queues at paths.
func NewReplay(ctx context.Context, paths []string, o ReplayOptions) (*Replay, error) {
	if o.Record == nil {
		o.Record = func(l *deadletter.Letter) files.Record {
			_, record := l.Payload()
			return files.Record{Bytes: record}
		}
	}
	before, err := parseState(o.State)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	r := &Replay{plans: map[string]*plan{}, start: o.State, record: o.Record}
	seen := map[string]bool{}
	for _, path := range paths {
		names, err := Files(path)
		if err != nil {
			return nil, err
		}
		s := surveyor{job: o.Job, done: before.Files, survey: &r.survey}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			p, err := s.file(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("dead letters: %w", err)
			}
			if err := r.add(p); err != nil {
				return nil, fmt.Errorf("dead letters: %w", err)
			}
		}
	}
	return r, nil
}

func (r *Replay) add(p *plan) error {
	if p == nil {
		return nil
	}
	if twin := r.plans[p.print]; twin != nil {
		return fmt.Errorf("%s and %s begin with the same letter: one is a copy of the other, or of a part of it; name one", twin.path, p.path)
	}
	r.plans[p.print] = p
	r.order = append(r.order, p.print)
	return nil
}

// Survey is what was found in the files.
func (r *Replay) Survey() Survey { return r.survey }

// Reads reports whether the file at path is one of those that are read.
func (r *Replay) Reads(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, p := range r.plans {
		if in, err := os.Stat(p.path); err == nil && os.SameFile(in, info) {
			return true
		}
	}
	return false
}

// Bounded is true.
func (r *Replay) Bounded() bool { return true }

// NewEnumerator hands out what is not replayed yet.
func (r *Replay) NewEnumerator(_ context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	state := ec.State
	if state == nil {
		state = r.start
	}
	return r.newEnumerator(state)
}

// NewReader makes the reader of one lane.
func (r *Replay) NewReader(context.Context, stream.ReaderContext) (stream.Reader[files.Record], error) {
	return &reader{replay: r}, nil
}

// Records reads everything there is to replay without an engine.
func (r *Replay) Records(ctx context.Context) iter.Seq2[*stream.Record[files.Record], error] {
	return func(yield func(*stream.Record[files.Record], error) bool) {
		e, err := r.newEnumerator(r.start)
		if err != nil {
			yield(nil, err)
			return
		}
		in := &reader{replay: r}
		defer in.Close()
		for _, s := range e.queue {
			if err := in.Open(ctx, s); err != nil {
				yield(nil, err)
				return
			}
			if !in.each(ctx, yield) {
				return
			}
		}
	}
}

// each yields the records of the open split, and reports whether to go on.
func (r *reader) each(ctx context.Context, yield func(*stream.Record[files.Record], error) bool) bool {
	var b stream.Batch[files.Record]
	for {
		err := r.Fetch(ctx, &b)
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		for i := range b.Records() {
			if !yield(&b.Records()[i], nil) {
				return false
			}
		}
	}
}

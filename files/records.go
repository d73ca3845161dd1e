package files

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/millrace-dev/millrace/stream"
)

// Records reads everything there is, in order, without an engine. A record is valid until the next one. Breaking out of
// the loop closes what is open. After an error nothing more comes.
func (s *Source) Records(ctx context.Context) iter.Seq2[*stream.Record[Record], error] {
	return func(yield func(*stream.Record[Record], error) bool) {
		e, err := s.NewEnumerator(ctx, stream.EnumeratorContext{})
		if err != nil {
			yield(nil, err)
			return
		}
		r := &reader{options: s.options, stdin: s.stdin}
		defer r.Close()
		more := true
		for more {
			split, err := e.Next(0)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				err = r.Open(ctx, split)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more = r.each(ctx, yield)
		}
	}
}

// each yields the records of the open split, and reports whether to go on.
func (r *reader) each(ctx context.Context, yield func(*stream.Record[Record], error) bool) bool {
	var b stream.Batch[Record]
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

package export

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-dev/millrace/bigquery"
)

// lanes read streams side by side, each one after the other, and hand chunks over in the turns of an order. All of them are owned by
// read and have ended when it has.
type lanes struct {
	planned *planned
	order   *order
	all     []*lane
}

// lane reads the streams that it is told, from a row on.
type lane struct {
	slots chan slot  // one at most waits
	given chan piece // nothing waits: a lane has one chunk at most that nobody has taken
}

// piece is a chunk, the end of a stream, or why it cannot be read.
type piece struct {
	chunk
	ended bool
	err   error
}

var errEnough = errors.New("nobody takes any more")

// read calls take for every chunk, in order, and ended at each stream's end, until all have been read.
func (l *lanes) read(ctx context.Context, take func(c *chunk, slot int) error, ended func(slot int)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel(errEnough)
		for _, one := range l.all {
			close(one.slots)
		}
		running.Wait()
	}()
	for _, s := range l.order.Slots {
		one := &lane{slots: make(chan slot, 1), given: make(chan piece)}
		l.all = append(l.all, one)
		enc, err := l.planned.encoder()
		if err != nil {
			return err
		}
		running.Go(func() { one.run(ctx, l.planned, enc) })
		one.begin(s)
	}
	for !l.order.ended() {
		at := l.order.Turn
		var p piece
		select {
		case p = <-l.all[at].given:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case p.err != nil:
			return p.err
		case p.ended:
			l.order.end()
			l.all[at].begin(l.order.Slots[at])
			ended(at)
		default:
			l.order.gave(p.rows)
			err = take(&p.chunk, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) begin(s slot) {
	if s.Stream != noStream {
		l.slots <- s
	}
}

// run ends when slots is closed or ctx has ended.
func (l *lane) run(ctx context.Context, p *planned, enc encoder) {
	r := p.BlockReader()
	defer r.Close()
	defer enc.close()
	give := func(p piece) error {
		select {
		case l.given <- p:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	emit := func(c chunk) error { return give(piece{chunk: c}) }
	read := r.Blocks
	if p.parts {
		read = r.Parts
	}
	for s := range l.slots {
		err := read(ctx, s.Stream, s.At, func(b bigquery.Block) error { return enc.add(b, emit) })
		if err == nil {
			err = enc.end(emit)
		}
		if err = give(piece{ended: err == nil, err: err}); err != nil || ctx.Err() != nil {
			return
		}
	}
}

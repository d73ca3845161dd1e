package files

import (
	"context"

	"github.com/millrace-dev/millrace/internal/avro/ocf"
)

// ahead reads the blocks of an input that cannot be read again, so that a fetch can be interrupted and nothing of a block is lost.
// Its goroutine belongs to the part, reads a block when it is asked to, and is joined by Close.
type ahead struct {
	asked  bool // a block is on its way
	ask    chan struct{}
	blocks chan aheadBlock
	cancel context.CancelFunc
	done   chan struct{}
}

type aheadBlock struct {
	block ocf.Block
	data  []byte
	err   error
}

func newAhead(in *pump, r *ocf.Reader) *ahead {
	ctx, cancel := context.WithCancel(context.Background())
	a := &ahead{ask: make(chan struct{}), blocks: make(chan aheadBlock, 1), cancel: cancel, done: make(chan struct{})}
	in.ctx = ctx
	go a.run(ctx, r)
	return a
}

func (a *ahead) run(ctx context.Context, r *ocf.Reader) {
	defer close(a.done)
	for {
		select {
		case <-a.ask:
		case <-ctx.Done():
			return
		}
		var b aheadBlock
		if b.block, b.err = r.Next(); b.err == nil {
			b.data, b.err = r.Data(b.block)
		}
		a.blocks <- b // has room: one is asked for at a time
		if b.err != nil {
			return
		}
	}
}

// next answers the next block. Where ctx ends it, the block is there for the next call. The data of the block before is void.
func (a *ahead) next(ctx context.Context) (aheadBlock, error) {
	if !a.asked {
		select {
		case a.ask <- struct{}{}:
			a.asked = true
		case <-a.done:
		}
	}
	select {
	case b := <-a.blocks:
		a.asked = false
		return b, nil
	case <-ctx.Done():
		return aheadBlock{}, ctx.Err()
	}
}

// Close ends the reading. A read of the input that is under way is the pump's.
func (a *ahead) Close() error {
	a.cancel()
	<-a.done
	return nil
}

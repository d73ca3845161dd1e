package files

import (
	"context"
	"io"
)

// pump reads an input that cannot be interrupted, such as a terminal or a pipe, so that a fetch can be. Its goroutine
// belongs to the pump and ends when the input does, or after the read that is under way when the pump is closed: no
// call can end a blocked read of standard input.
type pump struct {
	ctx    context.Context // bounds the next Read; set by the reader before each
	blocks chan block
	free   chan []byte
	done   chan struct{}
	rest   block
	buf    []byte // the one buffer, while Read has it
}

type block struct {
	data []byte
	err  error
}

const pumpBytes = 256 << 10

func newPump(in io.Reader) *pump {
	p := &pump{ctx: context.Background(), blocks: make(chan block), free: make(chan []byte, 1), done: make(chan struct{})}
	p.free <- make([]byte, pumpBytes)
	go p.run(in)
	return p
}

func (p *pump) run(in io.Reader) {
	for {
		var buf []byte
		select {
		case buf = <-p.free:
		case <-p.done:
			return
		}
		n, err := in.Read(buf)
		select {
		case p.blocks <- block{buf[:n], err}:
		case <-p.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *pump) Read(b []byte) (int, error) {
	for len(p.rest.data) == 0 {
		if p.rest.err != nil {
			return 0, p.rest.err
		}
		select {
		case p.rest = <-p.blocks:
			p.buf = p.rest.data[:cap(p.rest.data)]
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.rest.data)
	if p.rest.data = p.rest.data[n:]; len(p.rest.data) == 0 && p.rest.err == nil {
		p.free <- p.buf
	}
	return n, nil
}

func (p *pump) Close() error {
	close(p.done)
	return nil
}

package fault

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Connections are the connections that clients have open, by their far end. Safe for concurrent use.
type Connections struct {
	mu    sync.Mutex // guards conns
	conns map[string]*connection
}

// Watch makes the connections accepted by l known.
func (c *Connections) Watch(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener
	all *Connections
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil
	}
	key := tcp.RemoteAddr().String()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.conns == nil {
		l.all.conns = map[string]*connection{}
	}
	c := &connection{TCPConn: tcp, all: l.all, key: key}
	l.all.conns[key] = c
	return c, nil
}

// connection takes itself off the list when it is closed.
type connection struct {
	*net.TCPConn
	all *Connections
	key string

	sent, received cutoff
}

// cutoff is how many bytes of one direction may still pass.
type cutoff struct {
	mu    sync.Mutex // guards the fields below
	armed bool
	left  int64
}

func (c *cutoff) arm(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.left = true, bytes
}

// take is how many of n bytes may pass, and whether the connection is to be cut behind them.
func (c *cutoff) take(n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || c.left > int64(n) {
		c.left -= int64(n)
		return n, false
	}
	n = int(c.left)
	c.left = 0
	return n, true
}

func (c *connection) Write(b []byte) (int, error) {
	n, cut := c.sent.take(len(b))
	if !cut {
		return c.TCPConn.Write(b)
	}
	written, err := c.TCPConn.Write(b[:n])
	c.reset()
	return written, errors.Join(err, net.ErrClosed)
}

// ReadFrom keeps io.Copy from passing Write by.
func (c *connection) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	n, cut := c.received.take(n)
	if cut {
		c.reset()
		return n, errors.Join(err, net.ErrClosed)
	}
	return n, err
}

// WriteTo keeps io.Copy from passing Read by.
func (c *connection) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}

// reset cuts the connection with a TCP reset: what has been written and not been sent is lost.
func (c *connection) reset() {
	_ = c.SetLinger(0) // the next line reports what matters
	_ = c.Close()
}

func (c *connection) Close() error {
	c.all.mu.Lock()
	if c.all.conns[c.key] == c {
		delete(c.all.conns, c.key)
	}
	c.all.mu.Unlock()
	return c.TCPConn.Close()
}

// Reset cuts a connection with a TCP reset: what has been written and not been sent is lost. An unknown one is ignored.
func (c *Connections) Reset(remote string) {
	c.mu.Lock()
	conn := c.conns[remote]
	c.mu.Unlock()
	if conn != nil {
		conn.reset()
	}
}

// ResetAfter is Reset once some more bytes have passed.
func (c *Connections) ResetAfter(remote string, cut Cut) {
	c.mu.Lock()
	conn := c.conns[remote]
	c.mu.Unlock()
	switch {
	case conn == nil:
	case cut.From == "client":
		conn.received.arm(cut.Bytes)
	default:
		conn.sent.arm(cut.Bytes)
	}
}

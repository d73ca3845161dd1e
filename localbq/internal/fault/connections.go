package fault

import (
	"net"
	"sync"
)

// Connections are the connections that clients have open, by their far end. Safe for concurrent use.
type Connections struct {
	mu    sync.Mutex // guards conns
	conns map[string]*net.TCPConn
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
		l.all.conns = map[string]*net.TCPConn{}
	}
	l.all.conns[key] = tcp
	return &connection{tcp, l.all, key}, nil
}

// connection takes itself off the list when it is closed.
type connection struct {
	*net.TCPConn
	all *Connections
	key string
}

func (c *connection) Close() error {
	c.all.mu.Lock()
	if c.all.conns[c.key] == c.TCPConn {
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
	if conn == nil {
		return
	}
	_ = conn.SetLinger(0) // the next line reports what matters
	_ = conn.Close()
}

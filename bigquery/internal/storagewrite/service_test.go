package storagewrite

import (
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/internal/gcp"
)

// refusingServer speaks just enough HTTP/2 to refuse every stream in the way that tells a client that it was never
// looked at. It answers its address, and a channel with an element for every stream that was opened.
func refusingServer(t *testing.T) (string, <-chan uint32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams := make(chan uint32, 16)
	done := make(chan struct{})
	go func() { // ends with the listener, joined in the cleanup
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			refuseStreams(c, streams)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String(), streams
}

// refuseStreams serves a connection until the client closes it.
func refuseStreams(c net.Conn, streams chan<- uint32) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	for {
		in, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch in := in.(type) {
		case *http2.SettingsFrame:
			if !in.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !in.IsAck() {
				err = f.WritePing(true, in.Data)
			}
		case *http2.HeadersFrame:
			streams <- in.StreamID
			err = f.WriteRSTStream(in.StreamID, http2.ErrCodeRefusedStream)
		}
		if err != nil {
			return
		}
	}
}

// A stream that is lost is ours to open again, whatever is known of how far it came: gRPC must not do it by itself.
func TestLostStreamIsNotReplaced(t *testing.T) {
	addr, streams := refusingServer(t)
	s := acquire(gcp.Connection{GRPCEndpoint: addr, RESTEndpoint: "http://" + addr})
	t.Cleanup(func() {
		if err := s.release(); err != nil {
			t.Error(err)
		}
	})
	client, err := s.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := appendOpener(client, "p", "US")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.RecvMsg(nil)
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
	if n := len(streams); n != 1 {
		t.Errorf("%d streams were opened, want 1", n)
	}
}

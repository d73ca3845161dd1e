package localbq

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// singlePort serves everything on the REST address: calls of content type application/grpc are gRPC's, all others REST's.
func (i *Instance) singlePort(ctx context.Context) error {
	if i.config.GRPCAddr != "" || i.config.GRPCTLS {
		return fmt.Errorf("SinglePort serves gRPC on RESTAddr, in clear text: leave GRPCAddr and GRPCTLS unset")
	}
	l, err := i.listen(ctx, i.config.RESTAddr)
	if err != nil {
		return err
	}
	i.restAddr = l.Addr().String()
	i.grpcAddr = i.restAddr
	i.rest, i.grpc = i.newREST(), i.newGRPC()
	i.rest.Handler = byContent(i.grpc, i.rest.Handler)
	// As much as gRPC's own server would take.
	i.rest.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: 1 << 20, MaxReceiveBufferPerConnection: windowBytes, MaxReceiveBufferPerStream: windowBytes,
	}
	i.serving.Go(func() { i.report("single port", i.rest.Serve(i.conns.Watch(l)), http.ErrServerClosed) })
	return nil
}

// byContent tells gRPC from REST as the gRPC protocol says to: by version and content type.
func byContent(grpc, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			grpc.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

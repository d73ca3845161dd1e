package localbq

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// singlePort serves everything on the REST address: calls of content type application/grpc are gRPC's, all others REST's.
func (i *Instance) singlePort(ctx context.Context) error {
	if i.config.GRPCAddr != "" || i.config.GCSAddr != "" || i.config.GRPCTLS {
		return fmt.Errorf("SinglePort serves gRPC and Cloud Storage on RESTAddr, in clear text: leave GRPCAddr, GCSAddr and GRPCTLS unset")
	}
	l, err := i.listen(ctx, "single port", i.config.RESTAddr)
	if err != nil {
		return err
	}
	i.restAddr = l.Addr().String()
	i.grpcAddr, i.gcsAddr = i.restAddr, i.restAddr
	i.rest, i.grpc, i.gcs = i.newREST(), i.newGRPC(), i.newGCS()
	i.rest.Handler = byContent(i.grpc, byPath(i.rest.Handler, i.gcs.Handler))
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

// restPaths are where paths of BigQuery begin.
var restPaths = []string{"/projects", "/bigquery/", "/upload/bigquery/", "/resumable/upload/bigquery/", "/batch/bigquery/",
	"/discovery/", "/$discovery/", "/local/"}

// byPath tells BigQuery from Cloud Storage, in which any other path may be an object's.
func byPath(rest, gcs http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.ContainsFunc(restPaths, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
			rest.ServeHTTP(w, r)
			return
		}
		gcs.ServeHTTP(w, r)
	})
}

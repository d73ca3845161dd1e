package storagewrite

import (
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
)

// Options are the knobs of the default-stream writer, all set: the face resolves defaults.
type Options struct {
	MaxAppendBytes   int // sum of row lengths in one request
	MaxBufferedBytes int // pending and unanswered, of one lane
	Recovery         retry.Schedule
	Resend           retry.Schedule
	MaxRetryDuration time.Duration // retry.NoLimit never gives up

	MaxInflightRequests, MaxInflightBytes int // of one connection
	MinConnections, MaxConnections        int // of one place

	IdleTimeout time.Duration
}

// connOptions is what connections need of them.
type connOptions struct {
	resend                                retry.Schedule
	maxRetryDuration                      time.Duration
	maxInflightRequests, maxInflightBytes int
	traceID                               string
	rand                                  func() float64
	log                                   *slog.Logger
}

func (o Options) conn(log *slog.Logger) connOptions {
	return connOptions{
		resend:              o.Resend,
		maxRetryDuration:    o.MaxRetryDuration,
		maxInflightRequests: o.MaxInflightRequests,
		maxInflightBytes:    o.MaxInflightBytes,
		traceID:             traceID(),
		rand:                retry.Random,
		log:                 log,
	}
}

const module = "github.com/millrace-dev/millrace"

// traceID tells the service who writes: "millrace:bigquery/" and the version.
var traceID = sync.OnceValue(func() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" && m.Version != "(devel)" {
				version = m.Version
			}
		}
	}
	return "millrace:bigquery/" + version
})

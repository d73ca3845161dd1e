package storageread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/internal/gcp"
)

func withRetryInfo(code codes.Code, info *errdetails.RetryInfo) error {
	s, err := status.New(code, "slow down").WithDetails(info)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

var unavailable = status.Error(codes.Unavailable, "gone for a moment")

func TestClassify(t *testing.T) {
	t.Parallel()
	seven := &errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)}
	internal := func(msg string) error { return status.Error(codes.Internal, msg) }
	for _, c := range []struct {
		name string
		err  error
		want verdict
		wait time.Duration
	}{
		{"end", io.EOF, ended, 0},
		{"unavailable", unavailable, backOff, 0},
		{"SRC-51", internal("stream terminated by RST_STREAM with error code: INTERNAL_ERROR"), reopen, 0},
		{"rst stream", internal("an Rst Stream frame"), reopen, 0},
		{"rst", internal("got an rst frame"), reopen, 0},
		{"eos", internal("Received unexpected EOS on DATA frame"), reopen, 0},
		{"unknown cause", internal("Connection closed with unknown cause"), reopen, 0},
		{"http2", internal("HTTP/2 error code: INTERNAL_ERROR"), reopen, 0},
		{"grpc-go without trailers", internal("server closed the stream without sending trailers"), reopen, 0},
		{"grpc-go cut message", internal("unexpected EOF"), reopen, 0},
		{"SRC-51 other internal", internal("boom"), fatal, 0},
		{"the words under another code", status.Error(codes.Unknown, "RST_STREAM"), fatal, 0},
		{"SRC-52 told", withRetryInfo(codes.ResourceExhausted, seven), asTold, 7 * time.Second},
		{"SRC-52 bare", status.Error(codes.ResourceExhausted, "quota"), fatal, 0},
		{"SRC-52 no delay", withRetryInfo(codes.ResourceExhausted, &errdetails.RetryInfo{}), fatal, 0},
		{"told under another code", withRetryInfo(codes.Aborted, seven), fatal, 0},
		{"SRC-53 aborted", status.Error(codes.Aborted, "x"), fatal, 0},
		{"SRC-53 deadline", status.Error(codes.DeadlineExceeded, "x"), fatal, 0},
		{"SRC-53 precondition", status.Error(codes.FailedPrecondition, "x"), fatal, 0},
		{"SRC-53 plain", errors.New("unavailable rst_stream"), fatal, 0},
		{"SRC-53 plain context", context.DeadlineExceeded, fatal, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v, wait := classify(c.err); v != c.want || wait != c.wait {
				t.Errorf("got %d after %v, want %d after %v", v, wait, c.want, c.wait)
			}
		})
	}
}

func TestPermanent(t *testing.T) {
	t.Parallel()
	rest := func(code int, reason string) error {
		return fmt.Errorf("call: %w", &googleapi.Error{Code: code, Errors: []googleapi.ErrorItem{{Reason: reason}}})
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"bytes", &row.Error{Kind: row.KindDecode}, true},
		{"no table", status.Error(codes.NotFound, "x"), true},
		{"offset beyond the end", status.Error(codes.FailedPrecondition, "x"), true},
		{"unavailable", fmt.Errorf("%w: %w", ErrRetriesExhausted, unavailable), false},
		{"quota", status.Error(codes.ResourceExhausted, "x"), false},
		{"aborted", status.Error(codes.Aborted, "x"), false},
		{"plain", errors.New("x"), false},
		{"deadline", context.DeadlineExceeded, false},
		{"half an emulator", fmt.Errorf("open: %w", gcp.ErrEndpoint), true},
		{"no result", fmt.Errorf("job: %w", ErrNoResultTable), true},
		{"query", &QueryJobError{Reason: "invalidQuery"}, true},
		{"query, by chance", &QueryJobError{Reason: "backendError"}, false},
		{"REST refuses", rest(403, "accessDenied"), true},
		{"REST is busy", rest(403, "rateLimitExceeded"), false},
		{"REST is down", rest(503, "backendError"), false},
	} {
		for _, e := range []interface{ Permanent() bool }{&PlanError{Err: c.err}, &ReadError{Err: c.err}} {
			if got := e.Permanent(); got != c.want {
				t.Errorf("%s: %T is permanent: %v, want %v", c.name, e, got, c.want)
			}
		}
	}
}

func newResume(u float64) *resume {
	return &resume{maxAttempts: 25, random: func() float64 { return u }}
}

func TestResume(t *testing.T) {
	t.Parallel()
	t.Run("SRC-50 nominal waits", func(t *testing.T) {
		r := newResume(0)
		var sum time.Duration
		for k := 1; k <= 24; k++ {
			r.opening()
			wait, end := r.failed(unavailable)
			nominal := min(100*math.Pow(1.3, float64(k-1)), 60_000)
			if end != nil || math.Abs(float64(wait)/1e6-nominal) > 0.001 {
				t.Fatalf("wait %d: %v, %v, want %.3f ms", k, wait, end, nominal)
			}
			sum += wait
		}
		if got := sum.Round(100 * time.Millisecond); got != 180600*time.Millisecond {
			t.Errorf("24 waits take %v, want 180.6 s", got)
		}
	})
	t.Run("SRC-50 drawn from above 0", func(t *testing.T) {
		for _, u := range []float64{0.5, math.Nextafter(1, 0)} {
			r := newResume(u)
			r.opening()
			wait, _ := r.failed(unavailable)
			if limit := time.Duration(float64(100*time.Millisecond)*(1-u)) + 1; wait <= 0 || wait > limit {
				t.Errorf("random %v: wait %v, want at most %v", u, wait, limit)
			}
		}
	})
	t.Run("SRC-48 gives up at attempt 25", func(t *testing.T) {
		r := newResume(0)
		for range 24 {
			r.opening()
			if _, end := r.failed(unavailable); end != nil {
				t.Fatal(end)
			}
		}
		r.opening()
		_, end := r.failed(unavailable)
		g, ok := errors.AsType[*gaveUp](end)
		if !ok || g.attempts != 25 || g.code != codes.Unavailable || !errors.Is(end, ErrRetriesExhausted) || !errors.Is(end, unavailable) {
			t.Errorf("got %#v", end)
		}
	})
	t.Run("SRC-49 a row makes attempts forgotten", func(t *testing.T) {
		r := newResume(0)
		attempts := 0
		fail := func(n int) {
			for range n {
				attempts++
				r.opening()
				if _, end := r.failed(unavailable); end != nil {
					t.Fatalf("attempt %d: %v", attempts, end)
				}
			}
		}
		fail(24)
		attempts++
		r.opening()
		r.got(1)
		if wait, end := r.failed(unavailable); end != nil || wait != 100*time.Millisecond {
			t.Fatalf("after a row: wait %v, %v, want 100 ms again", wait, end)
		}
		fail(24)
		attempts++
		if at := r.opening(); at != 1 {
			t.Errorf("opens at %d, want 1", at)
		}
		r.got(9)
		if _, end := r.failed(io.EOF); end != io.EOF || attempts != 50 || r.received != 10 {
			t.Errorf("%v after %d attempts at %d", end, attempts, r.received)
		}
	})
	t.Run("SRC-39 a block without rows is no progress", func(t *testing.T) {
		r := newResume(0)
		r.maxAttempts = 2
		for i := range 2 {
			r.opening()
			r.got(0)
			if _, end := r.failed(unavailable); (end != nil) != (i == 1) {
				t.Fatalf("attempt %d: %v", i+1, end)
			}
		}
	})
	t.Run("SRC-51 a reset call is opened again after 1 ms", func(t *testing.T) {
		r := newResume(0)
		for range 24 { // it does not grow
			r.opening()
			if wait, end := r.failed(status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")); end != nil || wait != time.Millisecond {
				t.Fatalf("wait %v, %v", wait, end)
			}
		}
	})
	t.Run("other classes leave the nominal wait alone", func(t *testing.T) {
		r := newResume(0)
		for _, err := range []error{status.Error(codes.Internal, "rst_stream"), withRetryInfo(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})} {
			r.opening()
			if _, end := r.failed(err); end != nil {
				t.Fatal(end)
			}
		}
		r.opening()
		if wait, _ := r.failed(unavailable); wait != 100*time.Millisecond {
			t.Errorf("wait %v", wait)
		}
	})
	t.Run("SRC-53 fatal at once", func(t *testing.T) {
		r := newResume(0)
		r.opening()
		_, end := r.failed(errors.New("plain"))
		if g, ok := errors.AsType[*gaveUp](end); !ok || g.attempts != 1 || g.code != codes.OK || errors.Is(end, ErrRetriesExhausted) {
			t.Errorf("got %#v", end)
		}
	})
}

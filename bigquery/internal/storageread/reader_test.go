package storageread

import (
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"context"
	"errors"
	"fmt"
	"github.com/pierrec/lz4/v4"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/stream"
)

// names is "r<from> … r<to-1>" as fmt prints it.
func names(from, to int) string {
	var s []string
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf("r%d", i))
	}
	return "[" + strings.Join(s, " ") + "]"
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stream *fakeStream
		at     int64
		change func(*Config)
		want   string
		opened string
		metric map[stream.Instrument]int64
	}{
		{name: "SRC-29 from the start", stream: newFakeStream(10, 10), want: "[" + names(0, 10) + "]", opened: "[0]"},
		{name: "SRC-29 from an offset", stream: newFakeStream(10, 10), at: 4, want: "[" + names(4, 10) + "]", opened: "[4]"},
		{name: "SRC-30 cap", stream: newFakeStream(10, 10), change: func(c *Config) { c.MaxRecordsPerFetch = 3 },
			want: "[[r0 r1 r2] [r3 r4 r5] [r6 r7 r8] [r9]]", opened: "[0]"},
		{name: "SRC-31 SRC-32 the end comes by itself", stream: newFakeStream(2, 2), change: func(c *Config) { c.MaxRecordsPerFetch = 2 },
			want: "[[r0 r1]]", opened: "[0]"},
		{name: "SRC-33 byte target", stream: newFakeStream(3, 3), change: func(c *Config) { c.MaxBytesPerFetch = 12 },
			want: "[[r0 r1] [r2]]", opened: "[0]"},
		{name: "SRC-37 restored after the batch", stream: newFakeStream(3, 3), at: 2, change: func(c *Config) { c.MaxBytesPerFetch = 12 },
			want: "[[r2]]", opened: "[2]"},
		{name: "SRC-38 restored at the end", stream: newFakeStream(10, 10), at: 10, want: "[]", opened: "[10]"},
		{name: "SRC-41 blocks are counted", stream: newFakeStream(6, 3), change: func(c *Config) { c.Limit = 4 },
			want: "[" + names(0, 4) + "]", opened: "[0]", metric: map[stream.Instrument]int64{RowsRead: 6, BytesRead: 30}},
		{name: "SRC-47 a broken call", stream: newFakeStream(10, 2, call{rows: 4, err: unavailable}),
			want: "[" + names(0, 10) + "]", opened: "[0 4]", metric: map[stream.Instrument]int64{ReadRetries: 1, RowsRead: 10}},
		{name: "SRC-55 a call that does not open", stream: newFakeStream(2, 2, call{openErr: unavailable}, call{openErr: unavailable}),
			want: "[" + names(0, 2) + "]", opened: "[0 0 0]", metric: map[stream.Instrument]int64{ReadRetries: 2}},
		{name: "SRC-84 restored at the limit", stream: newFakeStream(10, 10), at: 5, change: func(c *Config) { c.Limit = 5 },
			want: "[]", opened: "[]"},
		// The limit counts what all lanes read, through one stream, rather than what each reads.
		{name: "SRC-83 a limit of 7 in batches of 3", stream: newFakeStream(10, 10), change: func(c *Config) { c.Limit, c.MaxRecordsPerFetch = 7, 3 },
			want: "[[r0 r1 r2] [r3 r4 r5] [r6]]", opened: "[0]"},
		{name: "SRC-83 restored after 6 of 7", stream: newFakeStream(10, 10), at: 6, change: func(c *Config) { c.Limit, c.MaxRecordsPerFetch = 7, 3 },
			want: "[[r6]]", opened: "[6]"},
		{name: "SRC-87 compressed", stream: compressing(10, 10), want: "[" + names(0, 10) + "]", opened: "[0]", metric: map[stream.Instrument]int64{BytesRead: 50}},
		{name: "SRC-87 not compressed, as it says", stream: saying(-1), want: "[" + names(0, 3) + "]", opened: "[0]"},
		{name: "SRC-87 not compressed, as it does not say", stream: newFakeStream(3, 3), want: "[" + names(0, 3) + "]", opened: "[0]"},
		{name: "SRC-88 a silent stream", stream: newFakeStream(3, 1, call{rows: 1, hangs: true}, call{openHangs: true}),
			change: func(c *Config) { c.StallTimeout = time.Second },
			want:   "[" + names(0, 3) + "]", opened: "[0 1 1]", metric: map[stream.Instrument]int64{ReadRetries: 2}},
		{name: "a queue of one byte", stream: newFakeStream(9, 2), change: func(c *Config) { c.FetchQueue, c.MaxBytesPerFetch = 1, 1 },
			want: "[[r0] [r1] [r2] [r3] [r4] [r5] [r6] [r7] [r8]]", opened: "[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, m := readerOf(t, c.stream, c.at, c.change)
				synctest.Wait() // the fetcher is as far ahead as it can be
				got, err := fetchAll(t, r)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(got) != c.want || fmt.Sprint(c.stream.opened) != c.opened {
					t.Errorf("got %v from calls at %v, want %s from %s", got, c.stream.opened, c.want, c.opened)
				}
				m.is(t, c.metric)
				synctest.Wait()
				if c.stream.ended != len(c.stream.opened) {
					t.Errorf("%d of %d calls were closed", c.stream.ended, len(c.stream.opened))
				}
			})
		})
	}
}

// compressing is a stream whose blocks are compressed, all zeros behind the names.
func compressing(n, blockRows int) *fakeStream {
	f := newFakeStream(n, blockRows)
	f.sent = func(r *storagepb.ReadRowsResponse) {
		rows := r.GetAvroRows().SerializedBinaryRows
		out := make([]byte, lz4.CompressBlockBound(len(rows)))
		var c lz4.Compressor
		n, err := c.CompressBlock(rows, out)
		if err != nil || n == 0 {
			panic("the rows do not compress")
		}
		r.GetAvroRows().SerializedBinaryRows, r.UncompressedByteSize = out[:n], new(int64(len(rows)))
	}
	return f
}

// saying is a stream of three rows that says of their size what it likes.
func saying(size int64) *fakeStream {
	f := newFakeStream(3, 3)
	f.sent = func(r *storagepb.ReadRowsResponse) { r.UncompressedByteSize = &size }
	return f
}

// SRC-87: what a response says of its size is not believed.
func TestReaderRefusesWhatIsCompressedWrongly(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 14, 16, 1 << 20, math.MaxInt64} {
		r, _ := readerOf(t, saying(size), 0, nil)
		got, err := fetchAll(t, r)
		if e, ok := errors.AsType[*ReadError](err); !ok || e.Attempts != 1 || got != nil || !strings.Contains(err.Error(), "response") {
			t.Errorf("%d: got %v: %v", size, got, err)
		}
	}
}

// SRC-86: a reader of one format refuses the splits of the other; which of them a source has, its type says.
func TestReaderOfAnotherFormat(t *testing.T) {
	t.Parallel()
	for _, arrow := range []bool{false, true} {
		c := testConfig(newFakeStream(1, 1).dial)
		c.Arrow = arrow
		log, _ := newLog()
		r := c.NewReader(Attempt{Meter: stream.NoMeter, Log: log})
		err := r.Open(t.Context(), Split{Stream: "S", Schema: textRows, Arrow: !arrow}.at(0))
		if e, ok := errors.AsType[*ReadError](err); !ok || !strings.Contains(e.Error(), "another format") {
			t.Errorf("arrow %t: got %v", arrow, err)
		}
	}
}

func TestReaderFails(t *testing.T) {
	t.Parallel()
	repeated := func(n int, c call) (all []call) {
		for range n {
			all = append(all, c)
		}
		return all
	}
	for _, c := range []struct {
		name     string
		script   []call
		offset   int64
		code     codes.Code
		attempts int
		retries  int64
		text     string
	}{
		{"SRC-48 25 attempts", repeated(30, call{err: unavailable}), 0, codes.Unavailable, 25, 24,
			"read stream S at offset 0 failed (status UNAVAILABLE, 25 attempts): "},
		{"SRC-51 boom", []call{{err: status.Error(codes.Internal, "boom")}}, 0, codes.Internal, 1, 0, "(status INTERNAL, 1 attempt): "},
		{"SRC-52 quota", []call{{err: status.Error(codes.ResourceExhausted, "quota")}}, 0, codes.ResourceExhausted, 1, 0, "status RESOURCE_EXHAUSTED"},
		{"SRC-53 after rows", []call{{rows: 4, err: status.Error(codes.Aborted, "x")}}, 4, codes.Aborted, 1, 0, "at offset 4 failed (status ABORTED"},
		{"SRC-53 plain", []call{{err: errors.New("plain")}}, 0, codes.OK, 1, 0, "at offset 0 failed (1 attempt): plain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeStream(10, 2, c.script...)
				r, m := readerOf(t, f, 0, nil)
				_, err := fetch(t.Context(), r)
				e, ok := errors.AsType[*ReadError](err)
				if !ok || e.Stream != "S" || e.Offset != c.offset || e.Code != c.code || e.Attempts != c.attempts || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v", err)
				}
				if exhausted := errors.Is(err, ErrRetriesExhausted); exhausted != (c.attempts == 25) {
					t.Errorf("exhausted: %v: %v", exhausted, err)
				}
				m.is(t, map[stream.Instrument]int64{ReadRetries: c.retries})
				if _, again := fetch(t.Context(), r); again != err {
					t.Errorf("the next fetch answers %v", again)
				}
			})
		})
	}
}

// SRC-49 end to end: the waits and the rows.
func TestReaderAfterProgressGetsFreshAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var script []call
		for range 24 {
			script = append(script, call{err: unavailable})
		}
		script = append(script, call{rows: 1, err: unavailable})
		script = append(script, script[:24]...)
		f := newFakeStream(10, 2, script...)
		start := time.Now()
		r, m := readerOf(t, f, 0, func(c *Config) { c.Pacer.Rand = func() float64 { return 0 } })
		got, err := fetchAll(t, r)
		if err != nil || fmt.Sprint(got) != "["+names(0, 10)+"]" || len(f.opened) != 50 {
			t.Errorf("got %v from %d calls: %v", got, len(f.opened), err)
		}
		m.is(t, map[stream.Instrument]int64{ReadRetries: 49})
		// 24 waits of 180.6 s in all, twice. The wait after r0 has a nominal of 100 ms again, so the second 24 are the
		// 25 that begin there: one more than the first run had, of 100 ms × 1.3^24 = 54.28 s.
		if took := time.Since(start).Round(100 * time.Millisecond); took != 415500*time.Millisecond {
			t.Errorf("waited %v in all", took)
		}
	})
}

// SRC-52
func TestReaderWaitsAsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := withRetryInfo(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
		start := time.Now()
		r, _ := readerOf(t, newFakeStream(1, 1, call{err: told}), 0, nil)
		if _, err := fetchAll(t, r); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("waited %v, want 7s", took)
		}
	})
}

// SRC-42, SRC-43: a cancelled fetch loses nothing. The call stays open, so nothing is read or billed twice.
func TestCancelledFetch(t *testing.T) {
	t.Parallel()
	t.Run("SRC-42 between fetches", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeStream(10, 4)
			r, _ := readerOf(t, f, 0, func(c *Config) { c.MaxRecordsPerFetch = 3 })
			first, err := fetch(t.Context(), r)
			if err != nil || fmt.Sprint(first) != names(0, 3) {
				t.Fatalf("got %v: %v", first, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got, err := fetch(ctx, r); err != nil {
				t.Fatal(err)
			} else if first = append(first, got...); len(got) == 0 {
				t.Error("no row and no error")
			}
			rest, err := fetchAll(t, r)
			for _, b := range rest {
				first = append(first, b...)
			}
			if err != nil || fmt.Sprint(first) != names(0, 10) || fmt.Sprint(f.opened) != "[0]" {
				t.Errorf("got %v from calls at %v: %v", first, f.opened, err)
			}
		})
	})
	t.Run("SRC-43 while receiving", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeStream(10, 2, call{rows: 2, hangs: true})
			r, _ := readerOf(t, f, 0, func(c *Config) { c.StallTimeout = time.Hour })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := fetch(ctx, r)
			if err != nil || fmt.Sprint(got) != names(0, 2) {
				t.Errorf("got %v: %v, want the two rows decoded", got, err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if got, err := fetch(ctx, r); got != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v: %v, want the context's error", got, err)
			}
			if rest, err := fetchAll(t, r); err != nil || fmt.Sprint(rest) != "["+names(2, 10)+"]" {
				t.Errorf("got %v: %v", rest, err)
			}
		})
	})
	t.Run("SRC-44 while opening", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeStream(2, 2, call{openHangs: true})
			r, _ := readerOf(t, f, 0, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := fetch(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if synctest.Wait(); f.ended != 1 {
				t.Error("the call that was opening is still there")
			}
		})
	})
	t.Run("SRC-54 while waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeStream(2, 2, call{err: withRetryInfo(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})})
			r, _ := readerOf(t, f, 0, nil)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			_, err := fetch(ctx, r)
			if _, is := errors.AsType[*ReadError](err); is || !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			if r.Close(); time.Since(start) != time.Second {
				t.Errorf("closing took %v", time.Since(start))
			}
		})
	})
	t.Run("SRC-45 with nothing open", func(t *testing.T) {
		log, _ := newLog()
		r := testConfig(newFakeStream(2, 1).dial).NewReader(Attempt{Meter: stream.NoMeter, Log: log})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := fetch(ctx, r); err == nil {
			t.Error("a fetch without a split succeeded")
		}
		if err := r.Open(t.Context(), Split{Stream: "S", Schema: textRows}.at(0)); err != nil {
			t.Fatal(err)
		}
		if got, err := fetchAll(t, r); err != nil || fmt.Sprint(got) != "["+names(0, 2)+"]" {
			t.Errorf("the next split: %v, %v", got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// SRC-39 in Arrow: a batch without rows takes bytes all the same. It is no block, and not the end.
func TestArrowBatchesWithoutRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows  int64 // that the first response says it has
		want  string
		fails bool
	}{{0, "2@0 2@2", false}, {-1, "", true}} {
		f, n := newFakeStream(6, 2), 0
		f.sent = func(r *storagepb.ReadRowsResponse) {
			r.Rows = &storagepb.ReadRowsResponse_ArrowRecordBatch{ArrowRecordBatch: &storagepb.ArrowRecordBatch{SerializedRecordBatch: []byte("batch")}}
			if n++; n == 1 {
				r.RowCount = c.rows
			}
		}
		conf := testConfig(f.dial)
		conf.Arrow = true
		log, _ := newLog()
		r := conf.NewReader(Attempt{Meter: stream.NoMeter, Log: log})
		got := ""
		err := r.Blocks(t.Context(), Split{Stream: "S", Schema: "schema", Arrow: true}.at(0), func(b Block) error {
			got += fmt.Sprintf(" %d@%d", b.Rows, b.Offset)
			return nil
		})
		if e, is := errors.AsType[*ReadError](err); is != c.fails || is && e.Offset != 0 || !is && err != nil || strings.TrimSpace(got) != c.want {
			t.Errorf("%d rows: blocks %s: %v", c.rows, got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// SRC-46: a split that is given up while it is active.
func TestCloseWithASplitOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream(10, 1, call{rows: 3, hangs: true})
		r, _ := readerOf(t, f, 0, func(c *Config) { c.MaxRecordsPerFetch = 1 })
		if _, err := fetch(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if f.ended != 1 || f.closed != 1 {
			t.Errorf("%d calls ended, %d connections closed, want one of each", f.ended, f.closed)
		}
		if got, err := fetch(t.Context(), r); got != nil || err == nil || err == io.EOF {
			t.Errorf("after Close: %v, %v", got, err)
		}
	})
}

// SRC-40 as a read fails with it.
func TestDecodeErrorsNameStreamAndOffset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream(3, 3)
		f.rows[2] = f.rows[2][:3]
		r, m := readerOf(t, f, 0, nil)
		_, err := fetch(t.Context(), r)
		e, ok := errors.AsType[*ReadError](err)
		if d, is := errors.AsType[*row.Error](err); !ok || !is || d.Kind != row.KindDecode || e.Offset != 2 || e.Attempts != 0 ||
			!strings.HasPrefix(err.Error(), "read stream S at offset 2 failed: D-TYPE: field c: ") {
			t.Errorf("got %v", err)
		}
		m.is(t, map[stream.Instrument]int64{ReadRetries: 0})
	})
}

// SRC-57
func TestExpiredSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   time.Duration
		want bool
	}{{"a minute ago", -time.Minute, true}, {"in an hour", time.Hour, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeStream(3, 3, call{err: status.Error(codes.FailedPrecondition, "session expired")})
				r := testConfig(f.dial).NewReader(Attempt{Meter: stream.NoMeter})
				defer r.Close()
				at := time.Now().Add(c.in)
				if err := r.Open(t.Context(), Split{Stream: "S", Schema: textRows, Expires: at}.at(0)); err != nil {
					t.Fatal(err)
				}
				_, err := fetch(t.Context(), r)
				for _, words := range []string{at.UTC().Format(time.RFC3339Nano), "six hours", "started over"} {
					if strings.Contains(err.Error(), words) != c.want {
						t.Errorf("%q is to be said: %v: %v", words, c.want, err)
					}
				}
				if errors.Is(err, ErrSessionExpired) != c.want || status.Code(err) != codes.FailedPrecondition {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// An error of the callback leaves the row where it is.
func TestRowThatIsNotTaken(t *testing.T) {
	t.Parallel()
	r, _ := readerOf(t, newFakeStream(3, 3), 0, nil)
	no := errors.New("no")
	if err := r.Fetch(t.Context(), func(row *row.Row, at int64, _ int) error {
		if at == 1 {
			return no
		}
		return nil
	}); err != no {
		t.Fatal(err)
	}
	if got, err := fetchAll(t, r); err != nil || fmt.Sprint(got) != "["+names(1, 3)+"]" {
		t.Errorf("got %v: %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	f := newFakeStream(1, 1)
	r, _ := readerOf(t, f, 0, nil)
	if err := r.Open(t.Context(), Split{Stream: "S", Schema: textRows}.at(0)); err == nil {
		t.Error("a second split was opened beside the first")
	}
	idle := testConfig(f.dial).NewReader(Attempt{Meter: stream.NoMeter})
	if err := idle.Open(t.Context(), stream.Split{ID: "S", Data: []byte("?")}); err == nil {
		t.Error("bytes that are no split were opened")
	}
	if err := idle.Open(t.Context(), Split{Stream: "S", Schema: `"long"`}.at(3)); err == nil || !strings.Contains(err.Error(), "read stream S at offset 3") {
		t.Errorf("a schema that is none: %v", err)
	}
	if f.dialed != 1 {
		t.Errorf("%d connections, want the first reader's alone", f.dialed)
	}
}

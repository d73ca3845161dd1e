package storageread

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

func planWith(t *testing.T, s *fakeService, change func(*Config)) (*Session, error) {
	t.Helper()
	c := testConfig(s.dial)
	if change != nil {
		change(c)
	}
	log, _ := newLog()
	return c.Plan(t.Context(), Attempt{Job: "nightly", Meter: stream.NoMeter, Log: log})
}

func TestSessionRequest(t *testing.T) {
	t.Parallel()
	avro := &storagepb.ReadSession_TableReadOptions_AvroSerializationOptions{
		AvroSerializationOptions: &storagepb.AvroSerializationOptions{EnableDisplayNameAttribute: true}}
	at := time.Date(2026, 8, 12, 12, 0, 0, 123456789, time.UTC)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   *storagepb.CreateReadSessionRequest
	}{
		{"SRC-11 minimal", nil, &storagepb.CreateReadSessionRequest{
			Parent: "projects/p",
			ReadSession: &storagepb.ReadSession{
				Table: "projects/p/datasets/d/tables/t", DataFormat: storagepb.DataFormat_AVRO, TraceId: "nightly",
				ReadOptions: &storagepb.ReadSession_TableReadOptions{OutputFormatSerializationOptions: avro},
			},
		}},
		{"SRC-12 everything", func(c *Config) {
			c.SelectedFields = []string{"a", "s.x"}
			c.RowRestriction = "a > 1"
			c.SnapshotTime = at
			c.SamplePercentage = 12.5
			c.Compressed = true
			c.MaxStreamCount, c.PreferredMinStreamCount = 7, 3
			c.TraceID = "trace"
		}, &storagepb.CreateReadSessionRequest{
			Parent: "projects/p", MaxStreamCount: 7, PreferredMinStreamCount: 3,
			ReadSession: &storagepb.ReadSession{
				Table: "projects/p/datasets/d/tables/t", DataFormat: storagepb.DataFormat_AVRO, TraceId: "trace",
				TableModifiers: &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(at)},
				ReadOptions: &storagepb.ReadSession_TableReadOptions{
					SelectedFields: []string{"a", "s.x"}, RowRestriction: "a > 1", SamplePercentage: new(12.5),
					OutputFormatSerializationOptions: avro,
					ResponseCompressionCodec:         storagepb.ReadSession_TableReadOptions_RESPONSE_COMPRESSION_CODEC_LZ4.Enum(),
				},
			},
		}},
		{"SRC-12 in Arrow", func(c *Config) { c.Arrow = true }, &storagepb.CreateReadSessionRequest{
			Parent: "projects/p",
			ReadSession: &storagepb.ReadSession{
				Table: "projects/p/datasets/d/tables/t", DataFormat: storagepb.DataFormat_ARROW, TraceId: "nightly",
				ReadOptions: &storagepb.ReadSession_TableReadOptions{},
			},
		}},
		{"SRC-12 in Arrow, packed", func(c *Config) { c.Arrow, c.ArrowCompression = true, ArrowZSTD }, &storagepb.CreateReadSessionRequest{
			Parent: "projects/p",
			ReadSession: &storagepb.ReadSession{
				Table: "projects/p/datasets/d/tables/t", DataFormat: storagepb.DataFormat_ARROW, TraceId: "nightly",
				ReadOptions: &storagepb.ReadSession_TableReadOptions{
					OutputFormatSerializationOptions: &storagepb.ReadSession_TableReadOptions_ArrowSerializationOptions{
						ArrowSerializationOptions: &storagepb.ArrowSerializationOptions{BufferCompression: storagepb.ArrowSerializationOptions_ZSTD}},
				},
			},
		}},
		{"SRC-13 another project pays", func(c *Config) {
			c.Table.Project, c.Parent = "pub", "bill"
		}, &storagepb.CreateReadSessionRequest{
			Parent: "projects/bill",
			ReadSession: &storagepb.ReadSession{
				Table: "projects/pub/datasets/d/tables/t", DataFormat: storagepb.DataFormat_AVRO, TraceId: "nightly",
				ReadOptions: &storagepb.ReadSession_TableReadOptions{OutputFormatSerializationOptions: avro},
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fakeService{streams: 1}
			if _, err := planWith(t, s, c.change); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.request, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTraceIDOfALongJob(t *testing.T) {
	t.Parallel()
	if got := traceID(strings.Repeat("ä", 200)); len(got) > MaxTraceID || strings.Trim(got, "ä") != "" {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	got, err := planWith(t, &fakeService{streams: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "projects/p/locations/us/sessions/x" || got.Table.String() != "p.d.t" || got.Bytes != 1000 || got.Expires.IsZero() {
		t.Errorf("got %+v", got)
	}
	for i, s := range got.Splits() {
		d, err := decodeSplit(s)
		if err != nil || s.Position != 0 || s.ID != got.Streams[i] || d != (Split{Stream: s.ID, Schema: textRows, Expires: got.Expires}) {
			t.Errorf("split %d is %+v: %v", i, d, err)
		}
	}
}

func TestPlanHints(t *testing.T) {
	t.Parallel()
	view := "request failed: Non-Table entities cannot be read with the storage API"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"SRC-58 view", status.Error(codes.InvalidArgument, view), "Query: \"SELECT * FROM `p.d.t`\", or set MaterializeViews"},
		{"SRC-58 same words, another status", status.Error(codes.NotFound, view), ""},
		{"SRC-58 another cause", status.Error(codes.InvalidArgument, "bad filter"), ""},
		{"permission", status.Error(codes.PermissionDenied, "no"), "bigquery.readsessions.create in the project p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := planWith(t, &fakeService{err: c.err}, nil)
			p, ok := errors.AsType[*PlanError](err)
			if !ok || !errors.Is(err, c.err) || (p.Hint == "") != (c.want == "") || !strings.Contains(err.Error(), c.want) ||
				!strings.HasSuffix(err.Error(), c.err.Error()) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// SRC-81
func TestPlanFailsWhereTheReaderWould(t *testing.T) {
	t.Parallel()
	_, err := planWith(t, &fakeService{streams: 1}, func(c *Config) {
		c.Columns = &table.Schema{Fields: []table.Field{{Name: "c", Type: table.Int64}}}
	})
	if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindResolve || !strings.Contains(err.Error(), "failed to plan") {
		t.Errorf("got %v", err)
	}
}

func TestCreateSessionTimeout(t *testing.T) {
	t.Parallel()
	t.Run("its own", bubble(func(t *testing.T) {
		_, err := planWith(t, &fakeService{hangs: true}, nil)
		if p, ok := errors.AsType[*PlanError](err); !ok || !errors.Is(p, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}))
	t.Run("the caller's", bubble(func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &fakeService{hangs: true}
		_, err := testConfig(s.dial).Plan(ctx, Attempt{Meter: stream.NoMeter})
		if p, ok := errors.AsType[*PlanError](err); ok || !errors.Is(err, context.DeadlineExceeded) || s.closed.Load() != 1 {
			t.Errorf("got %v, %v", p, err)
		}
	}))
}

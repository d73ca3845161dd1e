package readapi

import (
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func TestCreateReadSession(t *testing.T) {
	f := setup(t)
	f.numbers(10)
	s := f.session(avroSession())
	if s.EstimatedRowCount != 10 || s.EstimatedTotalBytesScanned != 10*8+10*(2+5) || s.Table != tablePath || s.DataFormat != storagepb.DataFormat_AVRO {
		t.Errorf("got %v", s)
	}
	if want := "projects/p/locations/us/sessions/"; len(s.Name) <= len(want) || s.Name[:len(want)] != want {
		t.Errorf("named %s", s.Name)
	}
	snapshotAt := func(at time.Time) func(*storagepb.CreateReadSessionRequest) {
		return func(r *storagepb.CreateReadSessionRequest) {
			r.ReadSession.TableModifiers = &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(at)}
		}
	}
	f.clock.Advance(9 * 24 * time.Hour)
	for _, c := range []struct {
		name    string
		change  func(*storagepb.CreateReadSessionRequest)
		code    codes.Code
		message string
	}{
		{"no such table", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.Table = "projects/p/datasets/d/tables/u" },
			codes.NotFound, "Not found: Table p:d.u"},
		{"no such dataset", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.Table = "projects/p/datasets/e/tables/u" },
			codes.NotFound, "Not found: Dataset p:e"},
		{"table name", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.Table = "p.d.t" },
			codes.InvalidArgument, `request failed: table "p.d.t": expected projects/{project}/datasets/{dataset}/tables/{table}`},
		{"parent", func(r *storagepb.CreateReadSessionRequest) { r.Parent = "p" },
			codes.InvalidArgument, `request failed: parent "p": expected projects/{project}`},
		{"format", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.DataFormat = 0 },
			codes.InvalidArgument, "request failed: data_format DATA_FORMAT_UNSPECIFIED: expected AVRO or ARROW"},
		{"LBQ-128 preferred above max", func(r *storagepb.CreateReadSessionRequest) { r.MaxStreamCount, r.PreferredMinStreamCount = 2, 3 },
			codes.InvalidArgument, "preferred_min_stream_count must be less than or equal to max_stream_count"},
		{"LBQ-134 snapshot of 8 days ago", snapshotAt(f.clock.Now().Add(-8 * 24 * time.Hour)),
			codes.InvalidArgument, "time travel timestamp exceeds the maximum time travel duration of 168h"},
		{"snapshot in the future", snapshotAt(f.clock.Now().Add(time.Hour)),
			codes.InvalidArgument, "time travel timestamp 2026-05-11T13:00:00Z is in the future"},
		{"LBQ-139 unknown selected fields", selecting("n", "x", "s.y"),
			codes.InvalidArgument, "request failed: The following selected fields do not exist in the table schema: x, s.y"},
		{"restriction without an engine", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.ReadOptions.RowRestriction = "n > 1" },
			codes.Unimplemented, "local BigQuery does not implement row_restriction: tests of this room have no engine"},
		{"options of the other format", buffers(storagepb.ArrowSerializationOptions_ZSTD),
			codes.InvalidArgument, "request failed: arrow_serialization_options are set for a session in Avro"},
		{"sample percentage", func(r *storagepb.CreateReadSessionRequest) { r.ReadSession.ReadOptions.SamplePercentage = new(0.0) },
			codes.InvalidArgument, "request failed: sample_percentage must be above 0 and at most 100, got 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.client.CreateReadSession(t.Context(), avroSession(c.change))
			refused(t, err, c.code, c.message)
		})
	}
}

func TestSnapshotTime(t *testing.T) {
	t.Run("LBQ-133 rows as of an instant", func(t *testing.T) {
		f := setup(t)
		f.numbers(1)
		f.clock.Advance(time.Second)
		first := f.clock.Now()
		f.clock.Advance(time.Second)
		f.write(`[{"n": 1, "s": null}]`)
		f.clock.Advance(time.Second)
		for _, c := range []struct {
			at   time.Time
			rows int64
		}{{first, 1}, {f.clock.Now(), 2}} {
			s := f.session(avroSession(func(r *storagepb.CreateReadSessionRequest) {
				r.ReadSession.TableModifiers = &storagepb.ReadSession_TableModifiers{SnapshotTime: timestamppb.New(c.at)}
			}))
			if s.EstimatedRowCount != c.rows {
				t.Errorf("as of %v: %d rows, want %d", c.at, s.EstimatedRowCount, c.rows)
			}
		}
	})
}

func TestViewsCannotBeRead(t *testing.T) {
	for _, materialized := range []bool{false, true} {
		t.Run("LBQ-132", func(t *testing.T) {
			f := setup(t)
			d := &schema.Definition{View: &schema.View{Query: "SELECT 1 AS n", Materialized: materialized}, Schema: &schema.Schema{Fields: []*schema.Field{{Name: "n", Type: schema.Int64}}}}
			if _, err := f.store.CreateTable(tableRef, d); err != nil {
				t.Fatal(err)
			}
			_, err := f.client.CreateReadSession(t.Context(), avroSession())
			refused(t, err, codes.InvalidArgument, "request failed: non-table entities cannot be read with the storage API")
		})
	}
}

func TestSelectedFields(t *testing.T) {
	t.Run("LBQ-138 the table's order and spelling", func(t *testing.T) {
		f := setup(t)
		f.numbers(1)
		s := f.session(avroSession(selecting("S", "n")))
		want := `{"type":"record","name":"__root__","fields":[{"name":"n","type":"long"},{"name":"s","type":["null","string"]}]}`
		if diff := cmp.Diff(want, s.GetAvroSchema().GetSchema()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a new column is unknown for a while", func(t *testing.T) {
		f := setup(t, func(d *Deps) {
			d.Profile.Windows.ReadSelectedFields = profile.Window{Min: 30 * time.Second, Max: 30 * time.Second}
		})
		f.numbers(1)
		if _, err := f.store.UpdateTable(tableRef, "", func(d *schema.Definition) error {
			d.Schema = d.Schema.Clone()
			d.Schema.Fields = append(d.Schema.Fields, &schema.Field{Name: "late", Type: schema.Int64})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		_, err := f.client.CreateReadSession(t.Context(), avroSession(selecting("late")))
		refused(t, err, codes.InvalidArgument, "request failed: The following selected fields do not exist in the table schema: late")
		f.clock.Advance(31 * time.Second)
		f.session(avroSession(selecting("late")))
	})
}

func TestRequiredPartitionFilter(t *testing.T) {
	f := setup(t)
	d := &schema.Definition{
		Schema:    &schema.Schema{Fields: []*schema.Field{{Name: "at", Type: schema.Date}}},
		Partition: &schema.TimePartition{Type: "DAY", Field: "at"}, RequirePartitionFilter: true,
	}
	if _, err := f.store.CreateTable(tableRef, d); err != nil {
		t.Fatal(err)
	}
	_, err := f.client.CreateReadSession(t.Context(), avroSession())
	refused(t, err, codes.InvalidArgument, "request failed: Cannot query over table 'p.d.t' without a filter over column(s) 'at' that can be used for partition elimination")
}

func TestDenied(t *testing.T) {
	denied := ""
	f := setup(t, func(d *Deps) {
		d.Denied = func(principal, permission, _ string) bool {
			return principal == "anonymous@local" && permission == denied
		}
	})
	f.numbers(1)
	denied = "bigquery.readsessions.create"
	_, err := f.client.CreateReadSession(t.Context(), avroSession())
	refused(t, err, codes.PermissionDenied, "request failed: the user does not have 'bigquery.readsessions.create' permission for 'projects/p'")
	denied = "bigquery.tables.getData"
	_, err = f.client.CreateReadSession(t.Context(), avroSession())
	refused(t, err, codes.PermissionDenied, "request failed: the user does not have 'bigquery.tables.getData' permission on 'projects/p/datasets/d/tables/t' (or it may not exist)")
}

func TestStreams(t *testing.T) {
	streams := func(t *testing.T, rows int, change ...func(*storagepb.CreateReadSessionRequest)) (*fixture, *storagepb.ReadSession) {
		f := setup(t, func(d *Deps) { d.Limits.SplitBytes = 2400 })
		f.numbers(rows)
		return f, f.session(avroSession(change...))
	}
	wish := func(most, preferred int32) func(*storagepb.CreateReadSessionRequest) {
		return func(r *storagepb.CreateReadSessionRequest) {
			r.MaxStreamCount, r.PreferredMinStreamCount = most, preferred
		}
	}
	t.Run("LBQ-129 empty table", func(t *testing.T) {
		if _, s := streams(t, 0); len(s.Streams) != 0 {
			t.Errorf("%d streams", len(s.Streams))
		}
	})
	t.Run("LBQ-126 small table", func(t *testing.T) {
		if _, s := streams(t, 100, wish(8, 4)); len(s.Streams) != 1 {
			t.Errorf("%d streams, want 1", len(s.Streams))
		}
	})
	t.Run("LBQ-127 cap", func(t *testing.T) {
		if _, s := streams(t, 1000, wish(3, 0)); len(s.Streams) != 3 {
			t.Errorf("%d streams, want 3", len(s.Streams))
		}
		_, free := streams(t, 1000)
		if len(free.Streams) <= 3 {
			t.Errorf("%d streams without a cap, want more than 3", len(free.Streams))
		}
		_, more := streams(t, 1000, wish(0, 500))
		if len(more.Streams) != 4*len(free.Streams) {
			t.Errorf("%d streams by preference, want %d", len(more.Streams), 4*len(free.Streams))
		}
	})
	t.Run("LBQ-130 projection", func(t *testing.T) {
		_, all := streams(t, 1000)
		_, one := streams(t, 1000, selecting("n"))
		if len(one.Streams) >= len(all.Streams) {
			t.Errorf("%d streams for one column, %d for both", len(one.Streams), len(all.Streams))
		}
	})
	t.Run("LBQ-131 streams partition the rows", func(t *testing.T) {
		f, s := streams(t, 1000)
		var all []int64
		for _, st := range s.Streams {
			out, err := f.read(st.Name, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ns(avroRows(t, s.GetAvroSchema().GetSchema(), out))...)
		}
		slices.Sort(all)
		if diff := cmp.Diff(upTo(0, 1000), all); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestCut holds that however a snapshot's parts lie and however many streams are wanted, the streams are the rows.
func TestCut(t *testing.T) {
	s := &schema.Schema{Fields: []*schema.Field{{Name: "n", Type: schema.Int64}}}
	everything, _ := projection.Of(s, nil)
	rapid.Check(t, func(t *rapid.T) {
		var parts []store.Part
		next := int64(0)
		for _, rows := range rapid.SliceOfN(rapid.Int64Range(1, 50), 0, 8).Draw(t, "parts") {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			for range rows {
				b.Append(next)
				next++
			}
			parts = append(parts, store.Part{Batch: array.NewRecordBatch(s.Arrow(), []arrow.Array{b.NewArray()}, rows)})
		}
		n := rapid.Int64Range(1, 20).Draw(t, "streams")
		streams := cut(parts, selectedBytes(parts, everything), n)
		if int64(len(streams)) > n || next > 0 && len(streams) == 0 {
			t.Fatalf("%d streams of %d rows, want %d", len(streams), next, n)
		}
		at := int64(0)
		for _, runs := range streams {
			for _, r := range runs {
				for i := range r.batch.NumRows() {
					if v := r.batch.Column(0).(*array.Int64).Value(int(i)); v != at {
						t.Fatalf("row %d where %d belongs", v, at)
					}
					at++
				}
			}
		}
		if at != next {
			t.Fatalf("%d rows of %d", at, next)
		}
		if want := min(n, next); next > 0 && n <= next/4 && int64(len(streams)) != want {
			t.Fatalf("%d streams of %d rows, want %d", len(streams), next, want)
		}
	})
}

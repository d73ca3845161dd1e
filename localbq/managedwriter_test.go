package localbq_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq"
)

// The high-level Go client, unmodified, on default streams.

func managed(t *testing.T, bq *localbq.Instance, options ...option.ClientOption) *managedwriter.Client {
	t.Helper()
	c, err := managedwriter.NewClient(context.Background(), localbq.DefaultProject, append(bq.GRPCClientOptions(), options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func managedStream(t *testing.T, c *managedwriter.Client, table string, r *rowType, options ...managedwriter.WriterOption) *managedwriter.ManagedStream {
	t.Helper()
	s, err := c.NewManagedStream(context.Background(), append([]managedwriter.WriterOption{
		managedwriter.WithDestinationTable(path(table)), managedwriter.WithSchemaDescriptor(r.proto),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestManagedWriter(t *testing.T) {
	ctx := context.Background()
	t.Run("appends in order", func(t *testing.T) {
		bq, ids, _ := oneTable(t, localbq.Config{})
		s := managedStream(t, managed(t, bq), "d.t", ids)
		var results []*managedwriter.AppendResult
		for i := range 20 {
			r, err := s.AppendRows(ctx, ids.rows(t, fmt.Sprint("id: ", 2*i), fmt.Sprint("id: ", 2*i+1)))
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		for i, r := range results {
			if offset, err := r.GetResult(ctx); err != nil || offset != managedwriter.NoStreamOffset {
				t.Errorf("append %d: offset %d, %v", i, offset, err)
			}
		}
		var want []string
		for i := range 40 {
			want = append(want, fmt.Sprintf(`{"id":%d}`, i))
		}
		wantContents(t, bq, "d.t", want...)
	})
	t.Run("many tables over one shared connection", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		c := managed(t, bq, managedwriter.WithMultiplexing())
		ids := describe(t, "id int64")
		var streams []*managedwriter.ManagedStream
		for i := range 5 {
			table := fmt.Sprint("d.t", i)
			makeTable(t, bq, table, column("id", "INTEGER"))
			streams = append(streams, managedStream(t, c, table, ids))
		}
		for round := range 10 {
			for i, s := range streams {
				r, err := s.AppendRows(ctx, ids.rows(t, fmt.Sprint("id: ", 10*i+round)))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.GetResult(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		connections := map[string]bool{}
		for r, err := range bq.Audit().Records() {
			if err != nil {
				t.Fatal(err)
			}
			if r.RPC == "AppendRows" {
				connections[r.Conn] = true
			}
		}
		for i := range streams {
			if rows, _ := bq.NumRows(fmt.Sprint("d.t", i)); rows != 10 {
				t.Errorf("table %d has %d rows, want 10", i, rows)
			}
		}
		if len(connections) != 1 {
			t.Errorf("%d connections, want 1", len(connections))
		}
	})
	t.Run("a lost acknowledgement and its retry", func(t *testing.T) {
		t.Parallel()
		bq, ids, _ := oneTable(t, localbq.Config{})
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows", Nth: 2}, Action: localbq.FaultAction{LoseAck: true}})
		s := managedStream(t, managed(t, bq), "d.t", ids, managedwriter.EnableWriteRetries(true))
		for i := range 3 {
			r, err := s.AppendRows(ctx, ids.rows(t, fmt.Sprint("id: ", i)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.GetResult(ctx); err != nil {
				t.Fatal(err)
			}
		}
		exactly, err := bq.Audit().ExactlyOnce("d.t", "id", []string{"0", "1", "2"})
		if err != nil || len(exactly.Missing) != 0 || fmt.Sprint(exactly.Twice) != "[1]" {
			t.Errorf("%+v, %v", exactly, err)
		}
		bq.Faults().MustAllFire(t)
	})
	t.Run("LBQ-93_a_wider_descriptor_among_unanswered_appends", func(t *testing.T) {
		bq, ids, _ := oneTable(t, localbq.Config{})
		s := managedStream(t, managed(t, bq), "d.t", ids)
		var results []*managedwriter.AppendResult
		// From one goroutine: a change of the descriptor races with other appends inside the client (v1.86.2).
		send := func(rows [][]byte, options ...managedwriter.AppendOption) {
			t.Helper()
			r, err := s.AppendRows(ctx, rows, options...)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		send(ids.rows(t, "id: 0"))
		addColumn(t, bq, "d.t", &bigquery.FieldSchema{Name: "late", Type: bigquery.StringFieldType})
		wide := describe(t, "id int64", "late string")
		for i := range 5 {
			send(ids.rows(t, fmt.Sprint("id: ", i+1)))
		}
		send(wide.rows(t, `id: 6 late: "x"`), managedwriter.UpdateSchemaDescriptor(wide.proto))
		want := []string{`{"id":6,"late":"x"}`, `{"id":7,"late":null}`}
		send(ids.rows(t, "id: 7"))
		for i, r := range results {
			if _, err := r.GetResult(ctx); err != nil {
				t.Errorf("append %d: %v", i, err)
			}
			if i < 6 {
				want = append(want, fmt.Sprintf(`{"id":%d,"late":null}`, i))
			}
		}
		slices.Sort(want)
		got := strings.Split(contents(t, bq, "d.t"), "\n")
		slices.Sort(got) // the client opens another call for the new descriptor
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	// Both wait as long as the client wants to: up to a second.
	t.Run("LBQ-102_a_throughput_storm", func(t *testing.T) {
		t.Parallel()
		bq, ids, open := oneTable(t, localbq.Config{})
		const message = "Exceeds 'AppendRows throughput' quota, user_id: projects/1 (status: INSUFFICIENT_TOKENS)"
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, Count: 4,
			Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "RESOURCE_EXHAUSTED", Message: message}}})
		call := open()
		call.refused(ids.first(t, stream("d.t"), "id: 0"), codes.ResourceExhausted, message)
		call.refused(ids.next(t, "id: 0"), codes.ResourceExhausted, message)
		s := managedStream(t, managed(t, bq), "d.t", ids, managedwriter.EnableWriteRetries(true))
		var results []*managedwriter.AppendResult
		for i := range 2 { // each is refused once
			r, err := s.AppendRows(ctx, ids.rows(t, fmt.Sprint("id: ", i)))
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		for _, r := range results {
			if _, err := r.GetResult(ctx); err != nil {
				t.Error(err)
			}
			if attempts, err := r.TotalAttempts(ctx); err != nil || attempts != 2 {
				t.Errorf("%d attempts, %v", attempts, err)
			}
		}
		bq.Faults().MustAllFire(t)
		if n, err := bq.NumRows("d.t"); n != 2 || err != nil {
			t.Errorf("%d rows, %v", n, err)
		}
	})
	t.Run("a row error comes through", func(t *testing.T) {
		bq := start(t, localbq.Config{})
		makeTable(t, bq, "d.t", column("d", "DATE"))
		dates := describe(t, "d string")
		s := managedStream(t, managed(t, bq), "d.t", dates)
		r, err := s.AppendRows(ctx, dates.rows(t, `d: "2024-01-01"`, `d: "2024-02-30"`))
		if err != nil {
			t.Fatal(err)
		}
		full, err := r.FullResponse(ctx)
		if err == nil || len(full.GetRowErrors()) != 1 || full.GetRowErrors()[0].GetIndex() != 1 {
			t.Errorf("%v, %v", full, err)
		}
	})
}

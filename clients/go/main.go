// Command go runs the official Go clients against a local BigQuery, unmodified. There is one function for each step of the
// suite.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigquery"
	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"cloud.google.com/go/civil"
	"cloud.google.com/go/storage"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/twmb/avro"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	project = os.Getenv("LOCAL_PROJECT")
	dataset = os.Getenv("LOCAL_DATASET")
	path    = managedwriter.TableParentFromParts(project, dataset, "orders")
	placed  = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
)

// clients are the official clients, as the steps use them.
type clients struct {
	bq      *bigquery.Client
	writer  *managedwriter.Client
	reader  *bqstorage.BigQueryReadClient
	objects *storage.Client
}

// overREST and overGRPC are how Go is pointed at the local service; the clients of Cloud Storage follow STORAGE_EMULATOR_HOST.

func overREST() []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint("http://" + os.Getenv("LOCAL_REST")),
		option.WithoutAuthentication(),
	}
}

func overGRPC() []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(os.Getenv("LOCAL_GRPC")),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

func open(ctx context.Context) (c clients, err error) {
	if c.bq, err = bigquery.NewClient(ctx, project, overREST()...); err != nil {
		return c, err
	}
	if err = c.bq.EnableStorageReadClient(ctx, overGRPC()...); err != nil {
		return c, err
	}
	if c.writer, err = managedwriter.NewClient(ctx, project, overGRPC()...); err != nil {
		return c, err
	}
	if c.reader, err = bqstorage.NewBigQueryReadClient(ctx, overGRPC()...); err != nil {
		return c, err
	}
	if err = os.Setenv("STORAGE_EMULATOR_HOST", os.Getenv("LOCAL_STORAGE")); err != nil {
		return c, err
	}
	c.objects, err = storage.NewClient(ctx)
	return c, err
}

func main() {
	ctx := context.Background()
	c, err := open(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"create", c.create},
		{"default stream", c.writeDefault},
		{"committed stream", c.writeCommitted},
		{"buffered stream", c.writeBuffered},
		{"pending stream", c.writePending},
		{"changes", c.writeChanges},
		{"read Avro", c.readAvro},
		{"read Arrow", c.readArrow},
		{"query", c.query},
		{"every type", c.everyType},
		{"list rows", c.listRows},
		{"update", c.update},
		{"insertAll", c.insertAll},
		{"DDL", c.ddl},
		{"DML", c.dml},
		{"Cloud Storage", c.cloudStorage},
		{"load", c.load},
		{"load a file", c.loadFile},
		{"copy", c.copy},
		{"extract", c.extract},
		{"delete", c.delete},
	} {
		result := "ok"
		if err := step.run(ctx); err != nil {
			result = strings.Join(strings.Fields(err.Error()), " ")
		}
		fmt.Printf("%s\t%s\n", step.name, result)
	}
}

func want(what string, got, expected any) error {
	if !reflect.DeepEqual(got, expected) {
		return fmt.Errorf("%s: got %v, want %v", what, got, expected)
	}
	return nil
}

// stored checks how many orders begin with a prefix.
func (c clients) stored(ctx context.Context, what, prefix string, expected int64) error {
	q := c.bq.Query(fmt.Sprintf("SELECT COUNT(*) AS n FROM `%s.orders` WHERE STARTS_WITH(sku, @prefix)", dataset))
	q.Parameters = []bigquery.QueryParameter{{Name: "prefix", Value: prefix}}
	it, err := q.Read(ctx)
	if err != nil {
		return err
	}
	var row struct{ N int64 }
	if err := it.Next(&row); err != nil {
		return err
	}
	return want(what, row.N, expected)
}

func (c clients) query(ctx context.Context) error {
	q := c.bq.Query(fmt.Sprintf("SELECT SUM(count) AS n, MAX(price) AS price, MAX(placed) AS placed FROM `%s.orders` WHERE sku LIKE @like", dataset))
	q.Parameters = []bigquery.QueryParameter{{Name: "like", Value: "default-%"}}
	it, err := q.Read(ctx)
	if err != nil {
		return err
	}
	var row struct {
		N      int64
		Price  *big.Rat
		Placed time.Time
	}
	if err := it.Next(&row); err != nil {
		return err
	}
	return want("result", fmt.Sprint(row.N, row.Price.FloatString(1), row.Placed), fmt.Sprint(10, "2.5", placed))
}

// everyType asks for values of every type, over REST and then over the Storage Read API.
func (c clients) everyType(ctx context.Context) error {
	sql := `SELECT TRUE, 1.5, b'\x00\xff', BIGNUMERIC '1e-38', DATE '2026-01-02', TIME '03:04:05.000006', DATETIME '2026-01-02 03:04:05',
		RANGE<DATE> '[2026-01-02, UNBOUNDED)', ST_GEOGPOINT(1, 2), [1, 2], [STRUCT('tea' AS name, 2 AS count)],
		CAST(NULL AS STRING), JSON '{"a": [1, null]}'`
	day := civil.Date{Year: 2026, Month: 1, Day: 2}
	hour := civil.Time{Hour: 3, Minute: 4, Second: 5}
	expected := []bigquery.Value{
		true, 1.5, []byte{0, 0xff}, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)), day,
		civil.Time{Hour: 3, Minute: 4, Second: 5, Nanosecond: 6000}, civil.DateTime{Date: day, Time: hour},
		&bigquery.RangeValue{Start: day}, "POINT(1 2)",
		[]bigquery.Value{int64(1), int64(2)}, []bigquery.Value{[]bigquery.Value{"tea", int64(2)}}, nil, `{"a":[1,null]}`,
	}
	rest, err := c.bq.Query(sql + ", INTERVAL 3 DAY").Read(ctx)
	if err != nil {
		return err
	}
	job, err := c.bq.Query(sql).Run(ctx)
	if err != nil {
		return err
	}
	storage, err := job.Read(ctx)
	if err != nil {
		return err
	}
	// This client reads no INTERVAL from Arrow.
	if err := first("row over the Storage Read API", storage, expected); err != nil {
		return err
	}
	return first("row", rest, append(expected, &bigquery.IntervalValue{Days: 3}))
}

func first(what string, rows *bigquery.RowIterator, expected []bigquery.Value) error {
	var row []bigquery.Value
	if err := rows.Next(&row); err != nil {
		return err
	}
	for i := range expected {
		if err := want(fmt.Sprint(what, ", column ", i), row[i], expected[i]); err != nil {
			return err
		}
	}
	return nil
}

var defaults = []string{"default-1 1", "default-2 2", "default-3 3", "default-4 4"}

func (c clients) readAvro(ctx context.Context) error {
	session, err := c.reader.CreateReadSession(ctx, &storagepb.CreateReadSessionRequest{
		Parent: "projects/" + project,
		ReadSession: &storagepb.ReadSession{
			Table:      path,
			DataFormat: storagepb.DataFormat_AVRO,
			ReadOptions: &storagepb.ReadSession_TableReadOptions{
				SelectedFields: []string{"sku", "count"},
				RowRestriction: "STARTS_WITH(sku, 'default-')",
			},
		},
		MaxStreamCount: 2,
	})
	if err != nil {
		return err
	}
	schema, err := avro.Parse(session.GetAvroSchema().GetSchema())
	if err != nil {
		return err
	}
	var found []string
	for _, s := range session.GetStreams() {
		rows, err := c.streamRows(ctx, s.GetName(), schema)
		if err != nil {
			return err
		}
		found = append(found, rows...)
	}
	slices.Sort(found)
	return want("rows", found, defaults)
}

func (c clients) streamRows(ctx context.Context, name string, schema *avro.Schema) (found []string, err error) {
	call, err := c.reader.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: name})
	if err != nil {
		return nil, err
	}
	for {
		block, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for rest := block.GetAvroRows().GetSerializedBinaryRows(); len(rest) > 0; {
			var row struct {
				SKU   string `avro:"sku"`
				Count *int64 `avro:"count"`
			}
			if rest, err = schema.Decode(rest, &row); err != nil {
				return nil, err
			}
			found = append(found, fmt.Sprint(row.SKU, " ", *row.Count))
		}
	}
}

// readArrow lets the client read a query's result over the Storage Read API.
func (c clients) readArrow(ctx context.Context) error {
	job, err := c.bq.Query(fmt.Sprintf("SELECT sku, count FROM `%s.orders` WHERE STARTS_WITH(sku, 'default-')", dataset)).Run(ctx)
	if err != nil {
		return err
	}
	rows, err := job.Read(ctx)
	if err != nil {
		return err
	}
	batches, err := rows.ArrowIterator()
	if err != nil {
		return err
	}
	batch, err := ipc.NewReader(bigquery.NewArrowIteratorReader(batches))
	if err != nil {
		return err
	}
	defer batch.Release()
	var found []string
	for batch.Next() {
		sku, count := batch.RecordBatch().Column(0).(*array.String), batch.RecordBatch().Column(1).(*array.Int64)
		for i := range sku.Len() {
			found = append(found, fmt.Sprint(sku.Value(i), " ", count.Value(i)))
		}
	}
	if err := batch.Err(); err != nil {
		return err
	}
	slices.Sort(found)
	return want("rows", found, defaults)
}

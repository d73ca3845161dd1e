package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
)

// insertAll streams rows in over REST. The second time, they are known by their ids.
func (c clients) insertAll(ctx context.Context) error {
	into := c.bq.Dataset(dataset).Table("orders").Inserter()
	var rows []*bigquery.ValuesSaver
	for i := range 2 {
		rows = append(rows, &bigquery.ValuesSaver{Schema: ordersSchema, InsertID: fmt.Sprint("row", i),
			Row: []bigquery.Value{fmt.Sprint("insert-", i), i, big.NewRat(5, 2), placed}})
	}
	if err := errors.Join(into.Put(ctx, rows), into.Put(ctx, rows)); err != nil {
		return err
	}
	if err := c.stored(ctx, "rows", "insert-", 2); err != nil {
		return err
	}
	err := into.Put(ctx, &bigquery.ValuesSaver{Schema: ordersSchema, Row: []bigquery.Value{"insert-2", "many", nil, placed}})
	if rejected := (bigquery.PutMultiError)(nil); !errors.As(err, &rejected) || len(rejected) != 1 || rejected[0].RowIndex != 0 {
		return fmt.Errorf("a row with text for a count: got %v, want one error of row 0", err)
	}
	return nil
}

func (c clients) ddl(ctx context.Context) error {
	for _, sql := range []string{
		"CREATE TABLE `%s.made` (sku STRING NOT NULL, count INT64) CLUSTER BY sku",
		"INSERT INTO `%s.made` (sku, count) VALUES ('tea', 1), ('cup', 2)",
		"ALTER TABLE `%s.made` ADD COLUMN note STRING",
	} {
		if err := done(ctx, c.bq.Query(fmt.Sprintf(sql, dataset))); err != nil {
			return fmt.Errorf(sql+": %w", dataset, err)
		}
	}
	made := c.bq.Dataset(dataset).Table("made")
	meta, err := made.Metadata(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(want("columns", len(meta.Schema), 3), want("rows", meta.NumRows, uint64(2))); err != nil {
		return err
	}
	if err := done(ctx, c.bq.Query(fmt.Sprintf("DROP TABLE `%s.made`", dataset))); err != nil {
		return err
	}
	_, err = made.Metadata(ctx)
	return refused("a table dropped", err, http.StatusNotFound)
}

func (c clients) dml(ctx context.Context) error {
	table := fmt.Sprintf("`%s.orders`", dataset)
	for _, s := range []struct {
		sql      string
		affected int64
	}{
		{"INSERT INTO " + table + " (sku, count) VALUES ('dml-1', 1), ('dml-2', 2)", 2},
		{"UPDATE " + table + " SET count = count + 10 WHERE STARTS_WITH(sku, 'dml-')", 2},
		{"DELETE FROM " + table + " WHERE sku = 'dml-1'", 1},
	} {
		job, err := c.bq.Query(s.sql).Run(ctx)
		if err != nil {
			return err
		}
		status, err := job.Wait(ctx)
		if err = errors.Join(err, failure(status)); err != nil {
			return err
		}
		if err := want(s.sql, status.Statistics.Details.(*bigquery.QueryStatistics).NumDMLAffectedRows, s.affected); err != nil {
			return err
		}
	}
	return c.stored(ctx, "rows", "dml-", 1)
}

const csv = "load-0,0,2.5,2026-01-02T03:04:05.678901Z\nload-1,1,2.5,2026-01-02T03:04:05.678901Z\n"

// cloudStorage works with objects. Content of more than a chunk goes up in parts that can be resumed.
func (c clients) cloudStorage(ctx context.Context) error {
	bucket := c.objects.Bucket(dataset)
	if err := bucket.Create(ctx, project, nil); err != nil {
		return err
	}
	absent := storage.Conditions{DoesNotExist: true}
	if err := upload(bucket.Object("orders.csv").If(absent).NewWriter(ctx), csv); err != nil {
		return err
	}
	if err := upload(bucket.Object("orders.csv").If(absent).NewWriter(ctx), csv); err == nil {
		return errors.New("a second object of one name: created, although asked not to")
	}
	large := strings.Repeat("0123456789abcdef", 50_000)
	w := bucket.Object("folder/large").NewWriter(ctx)
	w.ChunkSize = 256 << 10
	if err := upload(w, large); err != nil {
		return err
	}
	if got, err := download(ctx, bucket.Object("folder/large")); err != nil || got != large {
		return fmt.Errorf("an object of %d bytes: got %d, %w", len(large), len(got), err)
	}
	if err := bucket.Object("folder/large").Delete(ctx); err != nil {
		return err
	}
	names, err := list(ctx, bucket, "")
	return errors.Join(err, want("objects", names, []string{"orders.csv"}))
}

func upload(w *storage.Writer, content string) error {
	_, err := io.WriteString(w, content)
	return errors.Join(err, w.Close())
}

func download(ctx context.Context, o *storage.ObjectHandle) (string, error) {
	r, err := o.NewReader(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	return string(content), err
}

func list(ctx context.Context, bucket *storage.BucketHandle, prefix string) (names []string, err error) {
	for it := bucket.Objects(ctx, &storage.Query{Prefix: prefix}); ; {
		o, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, o.Name)
	}
}

func (c clients) load(ctx context.Context) error {
	from := bigquery.NewGCSReference(fmt.Sprintf("gs://%s/*.csv", dataset))
	from.Schema = ordersSchema
	if err := done(ctx, c.bq.Dataset(dataset).Table("loaded").LoaderFrom(from)); err != nil {
		return err
	}
	return c.rows(ctx, "loaded", 2)
}

// loadFile sends a file along with the job.
func (c clients) loadFile(ctx context.Context) error {
	from := bigquery.NewReaderSource(bytes.NewReader([]byte(`{"sku": "file-1", "count": 1}` + "\n" + `{"sku": "file-2", "count": 2}` + "\n")))
	from.SourceFormat, from.Schema = bigquery.JSON, ordersSchema[:2]
	if err := done(ctx, c.bq.Dataset(dataset).Table("from_file").LoaderFrom(from)); err != nil {
		return err
	}
	return c.rows(ctx, "from_file", 2)
}

func (c clients) copy(ctx context.Context) error {
	from, to := c.bq.Dataset(dataset).Table("from_file"), c.bq.Dataset(dataset).Table("copied")
	if err := done(ctx, to.CopierFrom(from)); err != nil {
		return err
	}
	return c.rows(ctx, "copied", 2)
}

func (c clients) extract(ctx context.Context) error {
	to := bigquery.NewGCSReference(fmt.Sprintf("gs://%s/out/copied-*.csv", dataset))
	extractor := c.bq.Dataset(dataset).Table("copied").ExtractorTo(to)
	extractor.DisableHeader = true
	if err := done(ctx, extractor); err != nil {
		return err
	}
	bucket := c.objects.Bucket(dataset)
	names, err := list(ctx, bucket, "out/")
	if err != nil {
		return err
	}
	var skus []string
	for _, name := range names {
		text, err := download(ctx, bucket.Object(name))
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			sku, _, _ := strings.Cut(line, ",")
			skus = append(skus, sku)
		}
	}
	slices.Sort(skus)
	return want("rows", skus, []string{"file-1", "file-2"})
}

// done starts a job and waits for its end.
func done(ctx context.Context, start interface {
	Run(context.Context) (*bigquery.Job, error)
}) error {
	job, err := start.Run(ctx)
	if err != nil {
		return err
	}
	status, err := job.Wait(ctx)
	return errors.Join(err, failure(status))
}

func failure(s *bigquery.JobStatus) error {
	if s == nil {
		return nil
	}
	return s.Err()
}

// rows checks how many rows a table says it has.
func (c clients) rows(ctx context.Context, table string, expected uint64) error {
	meta, err := c.bq.Dataset(dataset).Table(table).Metadata(ctx)
	if err != nil {
		return err
	}
	return want("rows of "+table, meta.NumRows, expected)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"cloud.google.com/go/bigquery/storage/managedwriter/adapt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// message is what rows are written as, made from columns.
func message(columns bigquery.Schema) (protoreflect.MessageDescriptor, error) {
	schema, err := adapt.BQSchemaToStorageTableSchema(columns)
	if err != nil {
		return nil, err
	}
	d, err := adapt.StorageSchemaToProto2Descriptor(schema, "Row")
	if err != nil {
		return nil, err
	}
	return d.(protoreflect.MessageDescriptor), nil
}

// orders are the rows prefix-first, prefix-first+1, …, encoded.
func orders(d protoreflect.MessageDescriptor, prefix string, first, count int) (rows [][]byte, err error) {
	for i := first; i < first+count; i++ {
		row, err := encode(d, fmt.Sprintf("%s-%d", prefix, i), int64(i), numeric(2_500_000_000), placed.UnixMicro())
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// encode makes a row of values in the order of the columns; nil is NULL.
func encode(d protoreflect.MessageDescriptor, values ...any) ([]byte, error) {
	m := dynamicpb.NewMessage(d)
	for i, v := range values {
		if v != nil {
			m.Set(d.Fields().Get(i), protoreflect.ValueOf(v))
		}
	}
	return proto.Marshal(m)
}

// numeric is a NUMERIC as bytes: billionths, two's complement, little endian.
func numeric(billionths int64) (b []byte) {
	for range 8 {
		b = append(b, byte(billionths))
		billionths >>= 8
	}
	return b
}

// opened is a stream and what its rows look like.
type opened struct {
	*managedwriter.ManagedStream
	row protoreflect.MessageDescriptor
}

func (c clients) stream(ctx context.Context, kind managedwriter.StreamType) (opened, error) {
	return c.streamTo(ctx, "orders", ordersSchema, managedwriter.WithType(kind))
}

func (c clients) streamTo(ctx context.Context, table string, columns bigquery.Schema, options ...managedwriter.WriterOption) (s opened, err error) {
	if s.row, err = message(columns); err != nil {
		return s, err
	}
	d, err := adapt.NormalizeDescriptor(s.row)
	if err != nil {
		return s, err
	}
	s.ManagedStream, err = c.writer.NewManagedStream(ctx, append(options, managedwriter.WithSchemaDescriptor(d),
		managedwriter.WithDestinationTable(managedwriter.TableParentFromParts(project, dataset, table)))...)
	return s, err
}

// write appends orders, waits for the answer and gives the offset in it.
func (s opened) write(ctx context.Context, prefix string, first, count int, options ...managedwriter.AppendOption) (int64, error) {
	rows, err := orders(s.row, prefix, first, count)
	if err != nil {
		return 0, err
	}
	result, err := s.AppendRows(ctx, rows, options...)
	if err != nil {
		return 0, err
	}
	return result.GetResult(ctx)
}

func (c clients) writeDefault(ctx context.Context) error {
	s, err := c.stream(ctx, managedwriter.DefaultStream)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, first := range []int{1, 3} {
		if _, err := s.write(ctx, "default", first, 2); err != nil {
			return err
		}
	}
	return c.stored(ctx, "rows", "default-", 4)
}

func (c clients) writeCommitted(ctx context.Context) error {
	s, err := c.stream(ctx, managedwriter.CommittedStream)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, a := range []struct{ offset, count int }{{0, 1}, {1, 2}, {3, 1}} {
		got, err := s.write(ctx, "committed", a.offset+1, a.count, managedwriter.WithOffset(int64(a.offset)))
		if err := errors.Join(err, want("offset", got, int64(a.offset))); err != nil {
			return err
		}
	}
	_, err = s.write(ctx, "committed", 1, 1, managedwriter.WithOffset(0))
	if status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("an offset written twice: got %v, want %v", err, codes.AlreadyExists)
	}
	return c.stored(ctx, "rows", "committed-", 4)
}

func (c clients) writeBuffered(ctx context.Context) error {
	s, err := c.stream(ctx, managedwriter.BufferedStream)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.write(ctx, "buffered", 1, 4); err != nil {
		return err
	}
	if err := c.stored(ctx, "rows before a flush", "buffered-", 0); err != nil {
		return err
	}
	flushed, err := s.FlushRows(ctx, 2)
	if err != nil {
		return err
	}
	return errors.Join(want("flushed", flushed, int64(2)), c.stored(ctx, "rows after a flush", "buffered-", 3))
}

func (c clients) writePending(ctx context.Context) error {
	s, err := c.stream(ctx, managedwriter.PendingStream)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.write(ctx, "pending", 1, 4); err != nil {
		return err
	}
	count, err := s.Finalize(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(want("finalized", count, int64(4)), c.stored(ctx, "rows before the commit", "pending-", 0)); err != nil {
		return err
	}
	answer, err := c.writer.BatchCommitWriteStreams(ctx, &storagepb.BatchCommitWriteStreamsRequest{Parent: path, WriteStreams: []string{s.StreamName()}})
	if err != nil {
		return err
	}
	return errors.Join(want("errors", len(answer.GetStreamErrors()), 0), c.stored(ctx, "rows after the commit", "pending-", 4))
}

// writeChanges keeps a table with a primary key up to date: the greatest sequence number of a key wins.
func (c clients) writeChanges(ctx context.Context) error {
	stock := c.bq.Dataset(dataset).Table("stock")
	key := &bigquery.TableConstraints{PrimaryKey: &bigquery.PrimaryKey{Columns: []string{"sku"}}}
	if err := stock.Create(ctx, &bigquery.TableMetadata{Schema: ordersSchema[:2], TableConstraints: key}); err != nil {
		return err
	}
	text := bigquery.StringFieldType
	s, err := c.streamTo(ctx, "stock", append(slices.Clone(ordersSchema[:2]),
		&bigquery.FieldSchema{Name: "_CHANGE_TYPE", Type: text}, &bigquery.FieldSchema{Name: "_CHANGE_SEQUENCE_NUMBER", Type: text}))
	if err != nil {
		return err
	}
	defer s.Close()
	var rows [][]byte
	for _, change := range [][]any{
		{"tea", int64(1), "UPSERT", "1"}, {"cup", int64(1), "UPSERT", "1"},
		{"tea", int64(3), "UPSERT", "3"}, {"tea", int64(2), "UPSERT", "2"}, {"cup", nil, "DELETE", "2"},
	} {
		row, err := encode(s.row, change...)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	result, err := s.AppendRows(ctx, rows)
	if err != nil {
		return err
	}
	if _, err = result.GetResult(ctx); err != nil {
		return err
	}
	it, err := c.bq.Query(fmt.Sprintf("SELECT STRING_AGG(FORMAT('%%s %%d', sku, count)) FROM `%s.stock`", dataset)).Read(ctx)
	if err != nil {
		return err
	}
	return errors.Join(first("rows", it, []bigquery.Value{"tea 3"}), stock.Delete(ctx))
}

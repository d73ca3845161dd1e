package main

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"cloud.google.com/go/bigquery/storage/managedwriter/adapt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// order is the message that rows are written as, made from the table's schema.
func (c clients) order(ctx context.Context) (protoreflect.MessageDescriptor, error) {
	meta, err := c.bq.Dataset(dataset).Table("orders").Metadata(ctx)
	if err != nil {
		return nil, err
	}
	schema, err := adapt.BQSchemaToStorageTableSchema(meta.Schema)
	if err != nil {
		return nil, err
	}
	d, err := adapt.StorageSchemaToProto2Descriptor(schema, "Order")
	if err != nil {
		return nil, err
	}
	return d.(protoreflect.MessageDescriptor), nil
}

// orders are the rows prefix-first, prefix-first+1, …, encoded.
func orders(d protoreflect.MessageDescriptor, prefix string, first, count int) (rows [][]byte, err error) {
	for i := range count {
		m := dynamicpb.NewMessage(d)
		set := func(name protoreflect.Name, v any) { m.Set(d.Fields().ByName(name), protoreflect.ValueOf(v)) }
		set("sku", fmt.Sprintf("%s-%d", prefix, first+i))
		set("count", int64(first+i))
		set("price", numeric(2_500_000_000))
		set("placed", placed.UnixMicro())
		row, err := proto.Marshal(m)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
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
	order protoreflect.MessageDescriptor
}

func (c clients) stream(ctx context.Context, kind managedwriter.StreamType) (s opened, err error) {
	if s.order, err = c.order(ctx); err != nil {
		return s, err
	}
	var d *descriptorpb.DescriptorProto
	if d, err = adapt.NormalizeDescriptor(s.order); err != nil {
		return s, err
	}
	s.ManagedStream, err = c.writer.NewManagedStream(ctx, managedwriter.WithDestinationTable(path),
		managedwriter.WithType(kind), managedwriter.WithSchemaDescriptor(d))
	return s, err
}

// write appends orders, waits for the answer and gives the offset in it.
func (s opened) write(ctx context.Context, prefix string, first, count int, options ...managedwriter.AppendOption) (int64, error) {
	rows, err := orders(s.order, prefix, first, count)
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

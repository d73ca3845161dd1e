package gcp

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ReachWrites asks the Storage Write service about a table, once. Nil says that it answered, whatever it said of the table.
func (c Connection) ReachWrites(ctx context.Context, table string) error {
	client, err := c.WriteClient(ctx)
	if err != nil {
		return err
	}
	request := &storagepb.GetWriteStreamRequest{Name: table + "/streams/_default"}
	_, err = client.GetWriteStream(ctx, request, gax.WithTimeout(10*time.Second), gax.WithRetry(func() gax.Retryer { return nil }))
	if said, ok := status.FromError(err); ok {
		switch said.Code() {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unauthenticated, codes.Unimplemented:
		default:
			err = nil
		}
	}
	return errors.Join(err, client.Close())
}

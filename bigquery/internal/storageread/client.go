package storageread

import (
	"context"
	"errors"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"

	"github.com/millrace-dev/millrace/internal/gcp"
)

// client is one connection to the Storage Read API, closed by who dialled it. A plan and each reader dial their own:
// with one shared by the source, the first to close it would close it for all.
type client struct {
	create func(context.Context, *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error)
	open   openRows
	close  func() error
}

type dialer func(context.Context) (*client, error)

// dialTo is the dialer of a connection.
func dialTo(conn gcp.Connection) dialer {
	return func(ctx context.Context) (*client, error) {
		c, err := conn.ReadClient(ctx)
		if err != nil {
			return nil, ofSource(err)
		}
		return &client{
			create: func(ctx context.Context, req *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error) {
				return c.CreateReadSession(ctx, req)
			},
			open:  openWith(c),
			close: c.Close,
		}, nil
	}
}

// ofSource says of a key file that cannot be used whose it is, and nothing else.
func ofSource(err error) error {
	if errors.Is(err, gcp.ErrCredentials) {
		return gcp.ErrSourceCredentials
	}
	return err
}

// openWith opens calls without the generated client's own retry, which would repeat the opening without a limit and
// count for nothing in resume.
func openWith(c *bqstorage.BigQueryReadClient) openRows {
	once := gax.WithRetry(func() gax.Retryer { return nil })
	decoded := gax.WithGRPCOptions(grpc.ForceCodecV2(codec{}))
	return func(ctx context.Context, stream string, offset int64) (receiveRows, error) {
		call, err := c.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: stream, Offset: offset}, once, decoded)
		if err != nil {
			return nil, err
		}
		return func() (*response, error) {
			var r response
			if err := call.RecvMsg(&r); err != nil {
				return nil, err
			}
			return &r, nil
		}, nil
	}
}

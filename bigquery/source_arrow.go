package bigquery

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// ArrowSession is a planned read whose rows come as Arrow record batches, for programs that take them as they are. It holds no
// connection and needs no closing. Its methods may be called from several goroutines, and Blocks any number of times: it
// reads the same rows again.
type ArrowSession struct {
	config  storageread.Config
	session *storageread.Session
}

// ReadArrow plans a read in Arrow, which costs nothing but, with FromQuery, the query. Every fault of the options is reported
// at once.
func ReadArrow(ctx context.Context, from Input, o SourceOptions) (*ArrowSession, error) {
	config, err := o.resolveArrow(from)
	if err != nil {
		return nil, err
	}
	planned, err := config.Plan(ctx, alone)
	if err != nil {
		return nil, err
	}
	return &ArrowSession{config, planned}, nil
}

func (o SourceOptions) resolveArrow(from Input) (storageread.Config, error) {
	config, err := o.resolve(from)
	if o.ReaderSchema != "" {
		err = errors.Join(err, errReaderSchema)
	}
	config.Arrow = true
	return config, err
}

// Name is the session's resource name.
func (s *ArrowSession) Name() string { return s.session.Name }

// Table is what is read: the table, or the result of the query.
func (s *ArrowSession) Table() table.Destination { return s.session.Table }

// Expires is the end of the session's life; zero when the service did not say.
func (s *ArrowSession) Expires() time.Time { return s.session.Expires }

// Streams is how many streams the service cut the read into; 0 when there is nothing to read.
func (s *ArrowSession) Streams() int { return len(s.session.Streams) }

// Estimate is the service's idea of how much there is to read; see ReadSession.Estimate.
func (s *ArrowSession) Estimate() (rows, bytes int64) { return s.session.Rows, s.session.Bytes }

// Schema is the schema of all blocks, as one schema message of Arrow's interprocess communication (arrow.proto,
// ArrowSchema.serialized_schema). With the Data of blocks behind it, it is what a reader of an Arrow stream takes.
func (s *ArrowSession) Schema() []byte { return []byte(s.session.Schema) }

// Blocks yields the rows, a record batch message in the Data of each block. Up to GOMAXPROCS streams are read at once, so
// blocks of different streams come mixed. The last pair holds the error, if there was one. Ending the loop early ends the
// read.
//
// With SourceOptions.Limit the last batch may hold more rows than the block's Rows says: the first of them count.
func (s *ArrowSession) Blocks(ctx context.Context) iter.Seq2[Block, error] {
	return gather(ctx, s.session.Splits(), func(ctx context.Context, splits <-chan stream.Split, give func(Block) error) error {
		r := s.config.NewReader(alone)
		defer r.Close()
		for split := range splits {
			if err := r.Blocks(ctx, split, give); err != nil {
				return err
			}
		}
		return nil
	})
}

var errReaderSchema = errors.New("ReaderSchema is an Avro schema, and batches of Arrow are as the session has them: leave it out, or read rows")

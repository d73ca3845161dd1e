package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/internal/gcp"
)

// bucket is a place in Cloud Storage. An object is there when it is complete, and cannot be appended to: a read goes on behind the
// last complete one. The notes are an object that is written anew for each; its generation tells whether somebody else writes it.
type bucket struct {
	target     target
	client     *gcp.Storage
	all        *storage.BucketHandle
	content    []byte // of the notes
	generation int64  // of the notes; 0 is none
}

func openBucket(ctx context.Context, t target, c bigquery.Connection) (place, error) {
	client, err := c.StorageClient(ctx)
	if err != nil {
		return nil, err
	}
	return &bucket{target: t, client: client, all: client.Bucket(t.bucket).Retryer(storage.WithPolicy(storage.RetryAlways))}, nil
}

func (b *bucket) says(name string) string { return b.target.says(name) }

func (b *bucket) claim(ctx context.Context) ([]byte, error) {
	r, err := b.all.Object(b.target.notes()).NewReader(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return nil, nil
	}
	if err == nil {
		b.generation = r.Attrs.Generation
		b.content, err = io.ReadAll(r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read %s: %w", ErrPlace, b.says(b.target.notes()), err)
	}
	return b.content, nil
}

func (b *bucket) occupied(ctx context.Context) (string, error) {
	if !b.target.many {
		_, err := b.all.Object(b.target.before).Attrs(ctx)
		if errors.Is(err, storage.ErrObjectNotExist) {
			return "", nil
		}
		if err != nil {
			err = fmt.Errorf("%w: look at %s: %w", ErrPlace, b.target.typed, err)
		}
		return b.target.typed, err
	}
	all := b.all.Objects(ctx, &storage.Query{Prefix: b.target.before, Delimiter: "/"})
	for {
		o, err := all.Next()
		if errors.Is(err, iterator.Done) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("%w: list %s: %w", ErrPlace, b.says(b.target.before), err)
		}
		if o.Name != "" && b.target.numbered(path.Base(o.Name)) {
			return b.says(o.Name), nil
		}
	}
}

func (b *bucket) cuts() bool { return false }

// pieceSize is what a client keeps to send again.
const pieceSize = 8 << 20

func (b *bucket) begin(ctx context.Context, n int, _ int64) (file, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := b.all.Object(b.target.name(n)).NewWriter(ctx)
	w.ChunkSize = pieceSize
	return &bucketFile{w, cancel, b.says(b.target.name(n))}, nil
}

type bucketFile struct {
	*storage.Writer
	cancel context.CancelFunc
	name   string
}

func (f *bucketFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.name, err)
	}
	return n, err
}

func (f *bucketFile) sync() error { return nil }

func (f *bucketFile) finish() error {
	defer f.cancel()
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

// abandon leaves no object behind: an upload whose context has ended is none.
func (f *bucketFile) abandon() {
	f.cancel()
	_ = f.Close()
}

func (b *bucket) keep(ctx context.Context, size int64, line []byte) error {
	content := append(b.content[:size:size], line...)
	o := b.all.Object(b.target.notes())
	if b.generation == 0 {
		o = o.If(storage.Conditions{DoesNotExist: true})
	} else {
		o = o.If(storage.Conditions{GenerationMatch: b.generation})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := o.NewWriter(ctx)
	w.ChunkSize = 0 // one request
	_, err := w.Write(content)
	if err == nil {
		err = w.Close()
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok && e.Code == http.StatusPreconditionFailed {
		return fmt.Errorf("%q: %w", b.target.typed, ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("%w: write %s: %w", ErrPlace, b.says(b.target.notes()), err)
	}
	b.content, b.generation = content, w.Attrs().Generation
	return nil
}

func (b *bucket) publish(context.Context, int) error { return nil }

func (b *bucket) forget(ctx context.Context, _ int) error {
	if b.generation == 0 {
		return nil
	}
	err := b.all.Object(b.target.notes()).If(storage.Conditions{GenerationMatch: b.generation}).Delete(ctx)
	if err != nil {
		return fmt.Errorf("remove %s: %w", b.says(b.target.notes()), err)
	}
	b.generation = 0
	return nil
}

func (b *bucket) Close() error { return b.client.Close() }

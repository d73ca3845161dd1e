package engine

import (
	"context"
	"errors"
	"io"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// bucketObjects keeps objects in a bucket.
type bucketObjects struct{ bucket *blob.Bucket }

func (b bucketObjects) create(ctx context.Context, key string, data []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a writer whose context has ended publishes nothing
	w, err := b.bucket.NewWriter(ctx, key, &blob.WriterOptions{IfNotExist: true, ContentType: "application/octet-stream"})
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		cancel()
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return ErrCheckpointExists
	} else if err != nil {
		return err
	}
	return nil
}

func (b bucketObjects) names(ctx context.Context, folder string) ([]string, error) {
	prefix := folder + "/"
	var names []string
	for it := b.bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"}); ; {
		object, err := it.Next(ctx)
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if !object.IsDir {
			names = append(names, strings.TrimPrefix(object.Key, prefix))
		}
	}
}

func (b bucketObjects) read(ctx context.Context, key string) ([]byte, error) {
	data, err := b.bucket.ReadAll(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNoCheckpoint
	}
	return data, err
}

func (b bucketObjects) remove(ctx context.Context, key string) error {
	if err := b.bucket.Delete(ctx, key); gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}

func (b bucketObjects) close() error { return b.bucket.Close() }

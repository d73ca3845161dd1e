package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // mem://
)

// Store keeps the checkpoints of jobs: one object for each, as bytes. It may be used from any goroutine.
//
// Job names are arbitrary text of any length. A name must never reach another job's checkpoints, nor anything that is
// not a checkpoint.
type Store interface {
	// Put publishes data as a checkpoint: wholly or not at all, and for good once it has returned nil. It answers
	// ErrCheckpointExists when the job has one of that id. After any other error, it may have been published or not.
	Put(ctx context.Context, job string, id int64, data []byte) error

	// List returns the ids of the job's checkpoints, from the oldest to the newest. It sees every Put and Delete that
	// returned before it was called.
	List(ctx context.Context, job string) ([]int64, error)

	// Load returns a checkpoint, or an error that wraps ErrNoCheckpoint.
	Load(ctx context.Context, job string, id int64) ([]byte, error)

	// Delete removes a checkpoint. One that does not exist is no error.
	Delete(ctx context.Context, job string, id int64) error
}

var (
	// ErrCheckpointExists is wrapped by what Store.Put answers when the id is taken.
	ErrCheckpointExists = errors.New("checkpoint exists")
	// ErrNoCheckpoint is wrapped by what Store.Load answers when there is no such checkpoint.
	ErrNoCheckpoint = errors.New("no such checkpoint")
)

// ReadCheckpoint reads a checkpoint of a job, and answers how many bytes are stored of it. An error wraps ErrNoCheckpoint where there is none,
// ErrDamaged where there is something else than a checkpoint of this job and id, or is a *FormatError.
func ReadCheckpoint(ctx context.Context, s Store, job string, id int64) (c *Checkpoint, bytes int, err error) {
	data, err := s.Load(ctx, job, id)
	if err != nil {
		return nil, 0, err
	}
	c, err = DecodeCheckpoint(data)
	if err == nil && (c.Job != job || c.ID != id) {
		err = fmt.Errorf("%w of this job: it is checkpoint %d of job %q", ErrDamaged, c.ID, c.Job)
	}
	if err != nil {
		return nil, len(data), fmt.Errorf("checkpoint %d: %w", id, err)
	}
	return c, len(data), nil
}

// BucketStore is a Store in a folder or a bucket: one object per checkpoint, under a folder per job.
type BucketStore struct {
	objects objects
	place   string // for messages
}

// OpenStore opens a store by URL:
//
//   - file:///var/lib/millrace or file://.millrace/checkpoints: a folder, absolute or relative, made when it is first
//     written to. A checkpoint is on disk, with its folder, before it counts as published.
//   - mem://: a store in memory, new and empty each time.
//   - gs://bucket/prefix, which is gs://bucket?prefix=prefix/, where gocloud.dev/blob/gcsblob is linked in.
//   - anything else that gocloud.dev/blob knows in this program.
func OpenStore(ctx context.Context, store string) (*BucketStore, error) {
	scheme, rest, ok := strings.Cut(store, "://")
	if !ok {
		return nil, fmt.Errorf("checkpoint store %q is no URL: want file://folder, gs://bucket or mem://", store)
	}
	if scheme == "file" {
		dir, err := folderOf(rest)
		if err != nil {
			return nil, fmt.Errorf("checkpoint store %q: %w", store, err)
		}
		return &BucketStore{newFolder(dir), store}, nil
	}
	place, err := withPrefix(store)
	if err != nil {
		return nil, fmt.Errorf("checkpoint store %q: %w", store, err)
	}
	bucket, err := blob.OpenBucket(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint store %q: %w", store, err)
	}
	return &BucketStore{bucketObjects{bucket}, store}, nil
}

// withPrefix makes the path of gs://bucket/prefix a prefix of keys. gcsblob passes over a path: all jobs of a bucket would
// share its root.
func withPrefix(store string) (string, error) {
	u, err := url.Parse(store)
	if err != nil {
		return "", err
	}
	folder := strings.Trim(u.Path, "/")
	if u.Scheme != "gs" || folder == "" {
		return store, nil
	}
	query := u.Query()
	if query.Has("prefix") {
		return "", errors.New("has a path and a prefix: expected one of them")
	}
	query.Set("prefix", folder+"/")
	u.Path, u.RawPath, u.RawQuery = "", "", query.Encode()
	return u.String(), nil
}

// NewBucketStore makes a store of an open bucket, which it closes with itself.
func NewBucketStore(bucket *blob.Bucket) *BucketStore {
	return &BucketStore{bucketObjects{bucket}, "bucket"}
}

// Close frees what the store holds open. Calls after it fail or, in a folder, go on working.
func (s *BucketStore) Close() error { return s.objects.close() }

// objects is where a BucketStore keeps bytes. Keys are ours: see objectKey. Errors carry no context.
type objects interface {
	// create answers ErrCheckpointExists when the key is taken.
	create(ctx context.Context, key string, data []byte) error
	// names lists the objects right under a folder, in any order, without the folder.
	names(ctx context.Context, folder string) ([]string, error)
	// read answers ErrNoCheckpoint when there is none.
	read(ctx context.Context, key string) ([]byte, error)
	// remove answers nil when there is none.
	remove(ctx context.Context, key string) error
	close() error
}

// Put implements Store.
func (s *BucketStore) Put(ctx context.Context, job string, id int64, data []byte) error {
	return s.wrap("publish", id, s.objects.create(ctx, objectKey(job, id), data))
}

// List implements Store. Objects whose names are not those of checkpoints are passed over.
func (s *BucketStore) List(ctx context.Context, job string) ([]int64, error) {
	names, err := s.objects.names(ctx, jobFolder(job))
	if err != nil {
		return nil, fmt.Errorf("list checkpoints in %s: %w", s.place, err)
	}
	return checkpointIDs(names), nil
}

// Load implements Store.
func (s *BucketStore) Load(ctx context.Context, job string, id int64) ([]byte, error) {
	data, err := s.objects.read(ctx, objectKey(job, id))
	return data, s.wrap("load", id, err)
}

// Delete implements Store.
func (s *BucketStore) Delete(ctx context.Context, job string, id int64) error {
	return s.wrap("delete", id, s.objects.remove(ctx, objectKey(job, id)))
}

// Probe finds out whether checkpoints of the job can be stored, by storing something that is none and taking it away. A run
// asks before it begins: one that could not store its last checkpoint would do all of its work again, and again.
func (s *BucketStore) Probe(ctx context.Context, job string) error {
	key := jobFolder(job) + "/" + tempName("probe", rand.Text())
	if err := s.objects.create(ctx, key, []byte("probe")); err != nil {
		return fmt.Errorf("store checkpoints in %s: %w", s.place, err)
	}
	// One that cannot be taken away is in nobody's way: it is not named as checkpoints are.
	_ = s.objects.remove(ctx, key)
	return nil
}

func (s *BucketStore) wrap(operation string, id int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s checkpoint %d in %s: %w", operation, id, s.place, err)
}

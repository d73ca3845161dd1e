package objects

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/storage"
)

const (
	// chunkBytes is how much is sent in one request. The client's default of 16 MiB would be held by every open file.
	chunkBytes = 4 << 20
	// wholeBytes is up to where an object is held, and sent in one request. It is the unit that chunks are counted in.
	wholeBytes = 256 << 10
	// stallTime is how long the service may take over one chunk, before it is sent again on another connection.
	stallTime = time.Minute
)

var (
	errAborted = errors.New("the upload was aborted")
	errClosed  = errors.New("the upload has ended")
)

// Object is an object that is being written. It exists once Close has returned nil. It is for one goroutine.
type Object struct {
	store  *Store
	uri    string
	ctx    context.Context // of the upload, which outlives the calls that feed it
	cancel context.CancelCauseFunc

	passing atomic.Pointer[error] // the last one

	head []byte          // all there is, while there is no upload
	up   *storage.Writer // nil before head is too large
	err  error           // what ended the object
}

// Create begins an object. Nothing is sent yet. The end of ctx does not end the object.
func (s *Store) Create(ctx context.Context, uri string) (*Object, error) {
	if _, _, err := parse(uri); err != nil {
		return nil, err
	}
	o := &Object{store: s, uri: uri}
	o.ctx, o.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return o, nil
}

// Write adds to the object. It blocks while a piece is being sent, and its error ends the object, as the end of ctx does while it
// blocks.
func (o *Object) Write(ctx context.Context, b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	if o.up == nil && len(o.head)+len(b) <= wholeBytes {
		o.head = append(o.head, b...)
		return len(b), nil
	}
	defer o.during(ctx)()
	if o.up == nil {
		if err := o.begin(chunkBytes); err != nil {
			return 0, o.fail(err)
		}
	}
	n, err := o.up.Write(b)
	if err != nil {
		return n, o.fail(err)
	}
	return n, nil
}

// during lets the end of ctx end the upload, until the returned function is called.
func (o *Object) during(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { o.cancel(context.Cause(ctx)) })
}

// begin starts the upload with what is held.
func (o *Object) begin(chunk int) error {
	handle, err := o.store.handle(o.ctx, o.uri, &o.passing)
	if err != nil {
		return err
	}
	w := handle.NewWriter(o.ctx)
	w.ChunkSize = chunk
	w.ChunkRetryDeadline = o.store.deadline
	w.ChunkTransferTimeout = min(stallTime, o.store.deadline)
	w.ContentType = "application/octet-stream"
	o.up = w
	_, err = w.Write(o.head)
	o.head = nil
	return err
}

// fail remembers what ended the object.
func (o *Object) fail(err error) error {
	if o.ctx.Err() != nil {
		err = ended(o.ctx, &o.passing)
	}
	o.err = fmt.Errorf("upload %s: %w", o.uri, err)
	o.end()
	return o.err
}

// end leaves nothing behind: an upload that is under way is given up.
func (o *Object) end() {
	o.cancel(errAborted)
	if o.up != nil {
		_ = o.up.Close() // it fails, and has ended when it returns
		o.up = nil
	}
	o.head = nil
}

// Close sends what is left. The object is there when it returns nil. After an error it may be there nevertheless, under a name that
// nobody else uses.
func (o *Object) Close(ctx context.Context) error {
	if o.err != nil {
		return o.err
	}
	defer o.during(ctx)()
	if o.up == nil {
		// One request, which the client would repeat for ever.
		late := time.AfterFunc(o.store.deadline, func() { o.cancel(fmt.Errorf("no success within %v", o.store.deadline)) })
		defer late.Stop()
		if err := o.begin(wholeBytes); err != nil {
			return o.fail(err)
		}
	}
	if err := o.up.Close(); err != nil {
		return o.fail(err)
	}
	o.up = nil
	o.cancel(errClosed)
	o.err = errClosed
	return nil
}

// Abort gives the object up, so that it does not come to be. After Close, and a second time, it does nothing.
func (o *Object) Abort() error {
	if o.err == nil {
		o.end()
		o.err = fmt.Errorf("upload %s: %w", o.uri, errAborted)
	}
	return nil
}

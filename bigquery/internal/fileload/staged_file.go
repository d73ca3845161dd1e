package fileload

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/internal/objects"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// depot is where files are staged. Package objects has the one that is Cloud Storage.
type depot interface {
	create(ctx context.Context, uri string) (object, error)
	Close() error
}

// object is one object under way.
type object interface {
	Write(ctx context.Context, b []byte) (int, error)
	// Close publishes the object.
	Close(ctx context.Context) error
	// Abort leaves no object.
	Abort() error
}

type cloudStorage struct{ *objects.Store }

func (s cloudStorage) create(ctx context.Context, uri string) (object, error) {
	o, err := s.Create(ctx, uri)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// stagedFile is an open file: what encodes rows, and the object that takes the bytes.
type stagedFile struct {
	uri    string
	format staging.Format
	schema *table.Schema
	rows   int64
	file   staging.File
	out    output
}

// output hands what a file writes to the object, under the context of the call that is being served.
type output struct {
	object object
	ctx    context.Context
	n      int64
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.object.Write(o.ctx, b)
	o.n += int64(n)
	return n, err
}

func openFile(ctx context.Context, d depot, uri string, e staging.Encoding, p *staging.Plan) (*stagedFile, error) {
	o, err := d.create(ctx, uri)
	if err != nil {
		return nil, err
	}
	f := &stagedFile{uri: uri, format: e.Format(), schema: p.Schema, out: output{object: o, ctx: ctx}}
	if f.file, err = e.NewFile(&f.out, p); err != nil {
		return nil, errors.Join(fmt.Errorf("begin %s: %w", uri, err), o.Abort())
	}
	return f, nil
}

// write adds a row.
func (f *stagedFile) write(ctx context.Context, row []byte) error {
	f.out.ctx = ctx
	return f.file.Write(row)
}

// finish writes what is left and publishes the object. It may run beside the finish of other files.
func (f *stagedFile) finish(ctx context.Context) error {
	f.out.ctx = ctx
	err := f.file.Close()
	if err == nil {
		err = f.out.object.Close(ctx)
	}
	if err != nil {
		return fmt.Errorf("finish %s: %w", f.uri, err)
	}
	return nil
}

// abort leaves no object.
func (f *stagedFile) abort() error {
	if err := f.out.object.Abort(); err != nil {
		return fmt.Errorf("give up %s: %w", f.uri, err)
	}
	return nil
}

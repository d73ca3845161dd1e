package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-dev/millrace/internal/avro/ocf"
	"github.com/millrace-dev/millrace/stream"
)

// openAvro reads an Avro file, or a range of one.
//
// A range holds the blocks whose sync marker before them begins in it; the first range holds the first block, too. Positions count
// the records of a range, so that the next is found by going from block to block: the marker says where one ends, without unpacking
// it.
type openAvro struct {
	blocks *ocf.Reader
	end    int64 // the first offset at which a marker belongs to the next range; 0 is none
	first  bool  // the block to come is the first of the file
	empty  bool  // no block begins in the range
	row    int64 // position of the next record

	ahead *ahead // of standard input; nil for files

	block ocf.Block
	data  []byte // what is left of the block
	at    int64  // of the record in its block
	left  int64
}

// openAvroPart opens the part of an Avro file.
func (o *openPart) openAvroPart(stdin *standardInput, position int64, limit int) error {
	in, name, err := o.input(stdin, position, 0)
	if err != nil {
		return err
	}
	o.place = &avroLocator{name: name}
	a, err := o.openAvroAt(in, position, limit)
	if err != nil {
		if o.raw.err == nil {
			err = lasting(err)
		}
		return err
	}
	if p, ok := o.raw.r.(*pump); ok {
		a.ahead = newAhead(p, a.blocks)
		o.closers = append(o.closers, a.ahead)
	}
	o.avro = a
	if l, ok := o.place.(*avroLocator); ok {
		l.schema = a.blocks.Text
	}
	return nil
}

// openAvroAt opens in, which holds the file from its start or, where it can seek, may go to the part's own start.
func (o *openPart) openAvroAt(in io.Reader, position int64, limit int) (*openAvro, error) {
	r, err := ocf.NewReader(in, limit)
	if err != nil {
		return nil, err
	}
	a := &openAvro{blocks: r, end: o.End, first: true}
	if o.Start > 0 {
		if err := a.seek(in, o.Start, limit); err != nil {
			return nil, err
		}
	}
	return a, a.pass(position)
}

// seek goes to the first block of a range that does not begin the file.
func (a *openAvro) seek(in io.Reader, start int64, limit int) error {
	f, ok := in.(io.Seeker)
	if !ok {
		return errors.New("a range of what cannot be read from the middle")
	}
	start = max(start, a.blocks.Size)
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return err
	}
	var err error
	if a.blocks, err = ocf.NewReaderAt(a.blocks.Header, in, start, limit); err != nil {
		return err
	}
	a.first = false
	err = a.blocks.Seek()
	if a.empty = errors.Is(err, io.EOF); a.empty {
		return nil
	}
	return err
}

// pass goes to a position.
func (a *openAvro) pass(position int64) error {
	for a.row < position {
		if err := a.next(); err != nil {
			return eofIsDamage(err)
		}
		if a.row+a.block.Count <= position {
			if err := a.blocks.Skip(a.block); err != nil {
				return err
			}
			a.row += a.block.Count
			continue
		}
		if err := a.unpack(); err != nil {
			return err
		}
		for a.row < position {
			if _, err := a.record(); err != nil {
				return err
			}
		}
	}
	return nil
}

func eofIsDamage(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file has fewer records than were read of it before")
	}
	return err
}

// next goes to the next block of the range; io.EOF where it has none.
func (a *openAvro) next() error {
	const marker = 16
	if a.empty || a.end > 0 && !a.first && a.blocks.At()-marker >= a.end {
		return io.EOF
	}
	a.first = false
	var err error
	a.block, err = a.blocks.Next()
	return err
}

// load takes the next block and its data.
func (a *openAvro) load(ctx context.Context) error {
	if a.ahead != nil {
		b, err := a.ahead.next(ctx)
		if err == nil {
			err = b.err
		}
		a.block, a.data, a.left, a.at = b.block, b.data, b.block.Count, 0
		if err != nil {
			a.left = 0
		}
		return err
	}
	if err := a.next(); err != nil {
		return err
	}
	return a.unpack()
}

func (a *openAvro) unpack() error {
	var err error
	if a.data, err = a.blocks.Data(a.block); err != nil {
		return err
	}
	a.left, a.at = a.block.Count, 0
	return nil
}

// record takes the next record of the block.
func (a *openAvro) record() ([]byte, error) {
	end := a.blocks.Schema.Skip(a.data, 0)
	if end < 0 {
		return nil, a.wrong("is cut, or of another schema than the file's")
	}
	rec := a.data[:end:end]
	a.data = a.data[end:]
	a.row++
	a.at++
	if a.left--; a.left == 0 && len(a.data) > 0 {
		return nil, a.wrong("is the last, and bytes are left behind it")
	}
	return rec, nil
}

func (a *openAvro) wrong(what string) error {
	return fmt.Errorf("%w: block at byte %d: record %d of %d %s", ocf.ErrDamaged, a.block.Offset, a.at, a.block.Count, what)
}

// fetchAvro hands over records of one block.
func (r *reader) fetchAvro(ctx context.Context, b *stream.Batch[Record]) error {
	o, a := r.open, r.open.avro
	for a.left == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := a.load(ctx)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return err
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, ocf.ErrDamaged) {
			return r.finish(io.EOF)
		}
		if err != nil {
			return o.avroError(err)
		}
	}
	for a.left > 0 && b.Len() < r.options.FetchRecords && b.Bytes < int64(r.options.FetchBytes) {
		at := a.row
		rec, err := a.record()
		if err != nil && b.Len() > 0 {
			a.left = 0
			o.failure = err // behind the good records before it
			break
		}
		if err != nil {
			return o.avroError(err)
		}
		b.Row(at, a.row)
		b.Emit(stream.Record[Record]{
			Value: Record{Bytes: rec, Schema: a.blocks.Text},
			At:    stream.Position{Split: o.id, Row: at, Locator: o.place},
		})
		b.Bytes += int64(len(rec))
	}
	b.Bytes = o.raw.n - o.told
	o.told = o.raw.n
	return nil
}

// avroError names the file. What the bytes themselves are to blame for will not mend.
func (o *openPart) avroError(err error) error {
	err = fmt.Errorf("files source: read %s: %w", o.Path, err)
	if o.raw.err == nil {
		err = lasting(err)
	}
	return err
}

// avroLocator names the file and the number of the record in its range.
type avroLocator struct{ name, schema string }

func (l *avroLocator) Locate(p stream.Position) stream.Location {
	return stream.Location{Name: l.name, Row: p.Row, Context: l.schema}
}

func (*avroLocator) close() {}

// AvroSchema is the schema of the first file's records, as JSON. Of standard input it is what the header says that head begins
// with.
func (s *Source) AvroSchema(head io.Reader) (string, error) {
	paths, err := s.Paths()
	if err != nil {
		return "", err
	}
	if paths[0] == Stdin {
		r, err := ocf.NewReader(head, s.options.MaxBlockBytes)
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		return r.Text, nil
	}
	if _, err := s.newEnumerator(paths[:1]); err != nil {
		return "", err
	}
	f, err := os.Open(paths[0])
	if err != nil {
		return "", err
	}
	defer f.Close()
	packed, err := sniff(f)
	if err != nil {
		return "", err
	}
	in, err := unpack(f, packed)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", paths[0], err)
	}
	defer in.Close()
	r, err := ocf.NewReader(in, s.options.MaxBlockBytes)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", paths[0], err)
	}
	return r.Text, nil
}

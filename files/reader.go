package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-dev/millrace/stream"
)

// reader reads one part at a time.
type reader struct {
	options Options
	stdin   *standardInput

	open *openPart
	buf  []byte // handed from one part to the next
}

// openPart is the part being read.
type openPart struct {
	part
	id      string
	lines   *lines
	avro    *openAvro // instead of lines
	failure error     // comes with the next fetch

	messages *messages // instead of lines

	raw     *counted // what has been read of the file as stored
	told    int64    // of raw, what batches have accounted for
	place   place
	closers []io.Closer

	preamble  int    // records at the beginning that are still to be passed over
	titled    bool   // the last of them is the header
	header    []byte // of the file
	line      int64  // where the next record of the preamble begins, and then the header: from 0
	container *openContainer
}

// place tells where a record is.
type place interface {
	stream.Locator
	close()
}

// Open opens the file of s and goes to its position.
func (r *reader) Open(_ context.Context, s stream.Split) error {
	p, err := parsePart(s.Data)
	if err != nil {
		return fmt.Errorf("files source: split %s: %w", s.ID, err)
	}
	o := &openPart{part: p, id: s.ID, preamble: r.options.preamble(), titled: r.options.Format == CSV && !r.options.CSV.NoHeader}
	switch {
	case r.options.Format == Avro:
		err = o.openAvroPart(r.stdin, s.Position, r.options.MaxBlockBytes)
	case r.options.Format == Protobuf:
		err = r.openMessages(o, s.Position)
	case p.Path == Stdin:
		err = o.openStdin(r.stdin, s.Position, r.lines)
	default:
		err = o.openFile(s.Position, r.lines, r.options.Container)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("files source: open %s: %w", p.Path, err), o.close())
	}
	r.open = o
	return nil
}

func (o *openPart) openStdin(in *standardInput, position int64, cut cutter) error {
	p, err := o.takeStdin(in, position)
	if err != nil {
		return err
	}
	o.start(p, 0, cut)
	o.place = &locator{path: standardInputName}
	return nil
}

const standardInputName = "standard input"

// name is what errors call the file.
func (o *openPart) name() string {
	if o.Path == Stdin {
		return standardInputName
	}
	return o.Path
}

func (o *openPart) takeStdin(in *standardInput, position int64) (*pump, error) {
	if in == nil {
		return nil, errors.New("no standard input was given to the source")
	}
	// What has been read once is gone: to go on as if it had never been there would lose it without a word.
	if position > 0 || in.taken.Swap(true) {
		return nil, lasting(errors.New("standard input cannot be read a second time: start from files, or with --from none and the input anew"))
	}
	p := newPump(in.r)
	o.closers = append(o.closers, p)
	return p, nil
}

func (o *openPart) openFile(position int64, cut cutter, open OpenContainer) error {
	f, err := os.Open(o.Path)
	if err != nil {
		return err
	}
	o.closers = append(o.closers, f)
	if err := o.unchanged(f); err != nil {
		return err
	}
	if open != nil {
		return o.openContainer(f, position, open)
	}
	if position > 0 && o.preamble > 0 {
		if err := o.head(cut); err != nil {
			return err
		}
	}
	// A range takes the lines that begin in it. Whether one begins at its very start is told by the byte before.
	from := position
	sync := o.Packed == "" && o.Start > 0 && position == o.Start
	if sync {
		from--
	}
	in, err := o.at(f, from)
	if err != nil {
		return err
	}
	o.start(in, from, cut)
	o.place = &locator{path: o.Path, packed: o.Packed}
	o.named()
	if sync {
		return o.lines.skipLine()
	}
	return nil
}

// head reads the beginning of the file, as far as the header, for a part that begins or goes on behind it.
func (o *openPart) head(cut cutter) error {
	first := &openPart{part: o.part, preamble: o.preamble, titled: o.titled}
	f, err := os.Open(o.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := first.at(f, 0)
	if err != nil {
		return errors.Join(err, first.close())
	}
	first.start(in, 0, cut)
	err = first.begin(context.Background())
	o.header, o.line, o.preamble = first.header, first.line, 0
	return errors.Join(err, first.close())
}

// begin passes over the records at the beginning of a file that are none, and keeps the header.
func (o *openPart) begin(ctx context.Context) error {
	for o.preamble > 0 {
		ln, ok := o.lines.ready()
		if !ok {
			if o.lines.eof {
				return nil
			}
			long, err := o.more(ctx)
			if err != nil {
				return err
			}
			if long == nil {
				continue
			}
			ln = *long
		}
		ends := int64(bytes.Count(ln.text, []byte{'\n'})) + 1
		if len(ln.text) == 0 {
			o.line += ends
			continue
		}
		if o.preamble--; o.preamble > 0 || !o.titled {
			o.line += ends
			continue
		}
		if ln.err != nil {
			return lasting(fmt.Errorf("files source: the header of %s: %w", o.Path, ln.err))
		}
		o.header = append([]byte{}, ln.text...)
		o.named()
	}
	return nil
}

// named tells the locator what the columns are called: a record that fails is of no use without.
func (o *openPart) named() {
	if l, ok := o.place.(*locator); ok {
		l.header = string(o.header)
	}
}

// unchanged refuses a file that is not the one that was listed: its positions would mean nothing.
func (o *openPart) unchanged(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if size := info.Size(); size < o.Size || o.Packed != "" && size != o.Size {
		return lasting(fmt.Errorf("the file changed since the job began: it had %d bytes and has %d; put it back, or start over with --from none",
			o.Size, size))
	}
	return nil
}

// at gives the bytes of f in the clear, from that position on.
func (o *openPart) at(f *os.File, position int64) (io.Reader, error) {
	if o.Packed == "" {
		if position > 0 {
			if _, err := f.Seek(position, io.SeekStart); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
	o.raw = &counted{r: f}
	in, err := unpack(o.raw, o.Packed)
	if err != nil {
		return nil, o.damaged(err)
	}
	o.closers = append(o.closers, quiet{in})
	if _, err := io.CopyN(io.Discard, in, position); err != nil {
		return nil, fmt.Errorf("go to byte %d of the unpacked file: %w", position, o.damaged(err))
	}
	return in, nil
}

// input gives the bytes of the part's file from the byte from on, or those of standard input, of which nothing may have been read,
// and what errors call it.
func (o *openPart) input(stdin *standardInput, position, from int64) (in io.Reader, name string, err error) {
	name = o.name()
	if o.Path == Stdin {
		in, err = o.takeStdin(stdin, position)
	} else {
		in, err = o.unpacked(from)
	}
	if err != nil {
		return nil, name, err
	}
	if o.raw == nil {
		o.raw = &counted{r: in}
		in = o.raw
	}
	return in, name, nil
}

func (o *openPart) unpacked(from int64) (io.Reader, error) {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, err
	}
	o.closers = append(o.closers, f)
	if err := o.unchanged(f); err != nil {
		return nil, err
	}
	return o.at(f, from)
}

// quiet closes what unpacks. Its Close would only say again what a Read has said.
type quiet struct{ io.Closer }

func (q quiet) Close() error {
	_ = q.Closer.Close()
	return nil
}

// cutter makes the lines of a byte stream that begins at a position.
type cutter func(in io.Reader, at int64) *lines

func (r *reader) lines(in io.Reader, at int64) *lines {
	return newLines(in, at, r.buffer(), r.options.MaxRecordBytes, r.options.ender())
}

func (r *reader) buffer() []byte {
	if r.buf == nil {
		r.buf = make([]byte, max(r.options.FetchBytes, 2*tooLongKept))
	}
	return r.buf
}

func (o *openPart) start(in io.Reader, at int64, cut cutter) {
	if o.raw == nil {
		o.raw = &counted{r: in}
		in = o.raw
	}
	o.lines = cut(in, at)
}

// Fetch hands over the lines that one buffer holds.
func (r *reader) Fetch(ctx context.Context, b *stream.Batch[Record]) error {
	b.Reset()
	if r.open == nil {
		return errors.New("files source: fetch without an open split")
	}
	o := r.open
	if o.container != nil {
		return r.finish(o.fetchRows(ctx, b, r.options.FetchRecords))
	}
	if o.failure != nil {
		return o.avroError(o.failure)
	}
	if o.avro != nil {
		return r.fetchAvro(ctx, b)
	}
	if o.messages != nil {
		return r.fetchMessages(ctx, b)
	}
	if err := o.begin(ctx); err != nil {
		return err
	}
	for b.Len() == 0 {
		finished := o.collect(b, r.options.FetchRecords)
		if b.Len() > 0 {
			break
		}
		if finished {
			if err := o.whole(o.lines.at); err != nil {
				return err
			}
			return r.finish(io.EOF)
		}
		if err := o.read(ctx, b); err != nil {
			return err
		}
	}
	b.Bytes = o.raw.n - o.told
	o.told = o.raw.n
	return nil
}

// finish closes the open part when err is its end.
func (r *reader) finish(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	o := r.open
	r.open = nil
	if err := o.close(); err != nil {
		return fmt.Errorf("files source: close %s: %w", o.Path, err)
	}
	return io.EOF
}

// collect takes what is ready, and reports whether the part has nothing more.
func (o *openPart) collect(b *stream.Batch[Record], limit int) (finished bool) {
	for b.Len() < limit {
		ln, ok := o.lines.ready()
		if !ok {
			return o.lines.eof
		}
		if o.End > 0 && ln.at >= o.End {
			o.lines.eof, o.lines.from = true, o.lines.to
			return true
		}
		o.emit(b, ln)
	}
	return false
}

func (o *openPart) emit(b *stream.Batch[Record], ln line) {
	if len(ln.text) > 0 {
		o.add(b, ln)
	}
}

func (o *openPart) add(b *stream.Batch[Record], ln line) {
	b.Row(ln.at, ln.next)
	b.Emit(stream.Record[Record]{
		Value: Record{Bytes: ln.text, Header: o.header, HeaderLine: o.line + 1, Err: ln.err},
		At:    stream.Position{Split: o.id, Row: ln.at, Locator: o.place},
	})
}

// read reads more, once.
func (o *openPart) read(ctx context.Context, b *stream.Batch[Record]) error {
	long, err := o.more(ctx)
	if long != nil {
		o.emit(b, *long)
	}
	return err
}

// more reads more, once. It answers a record that is too long.
func (o *openPart) more(ctx context.Context) (*line, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p, ok := o.raw.r.(*pump); ok {
		p.ctx = ctx
	}
	long, err := o.lines.more()
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return long, ignoreEOF(err)
	}
	return long, fmt.Errorf("files source: read %s, at byte %d of its contents: %w", o.Path, o.lines.at, o.damaged(err))
}

// whole refuses the end of a file that has fewer bytes than when it was opened: what it had is lost.
func (o *openPart) whole(at int64) error {
	end := o.Size
	if o.End > 0 {
		end = o.End
	}
	if o.Packed != "" || o.Path == Stdin || at >= end {
		return nil
	}
	return lasting(fmt.Errorf("files source: %s was cut while it was read: it had %d bytes and ended at byte %d", o.Path, o.Size, at))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Close closes the open part.
func (r *reader) Close() error {
	o := r.open
	r.open = nil
	if o == nil {
		return nil
	}
	return o.close()
}

func (o *openPart) close() error {
	var errs []error
	for i := len(o.closers) - 1; i >= 0; i-- {
		errs = append(errs, o.closers[i].Close())
	}
	if o.place != nil {
		o.place.close()
	}
	return errors.Join(errs...)
}

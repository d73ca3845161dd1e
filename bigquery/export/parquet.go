package export

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace-dev/millrace/bigquery"
)

const (
	// A row group has so many rows at most, and so many bytes of Arrow for each lane, one more, which is the one being written.
	groupRows  = 1 << 20
	groupBytes = 32 << 20
	// Rows go to the Parquet writer in pieces of so many rows, or as many as have so many bytes: where pages end depends on it.
	pieceRows  = 8192
	pieceBytes = 1 << 20
)

const parquetMagic = "PAR1"

// groups makes row groups. Each is a Parquet file by itself at first, of which the row group is taken out and its place in the
// footer kept: so lanes make them side by side, and a file can be cut behind any.
type groups struct {
	message []byte
	schema  *arrow.Schema
	size    sizes

	held     []arrow.RecordBatch // slices of the piece being made
	rows     int64               // in held
	heldBits int64
	out      *pqarrow.FileWriter // nil between groups
	buf      *bytes.Buffer
	outRows  int64
	outBits  int64
	progress float64
	bufs     buffers
}

func newGroups(message []byte, size sizes) (*groups, error) {
	s, err := schemaOf(message)
	if err != nil {
		return nil, err
	}
	g := &groups{message: message, schema: s, size: size, bufs: newBuffers(int(min(size.groupBits/8, groupBytes)))}
	out, _, err := g.writer(new(bytes.Buffer), nil) // the faults of a schema are found here
	if err != nil {
		return nil, err
	}
	return g, out.Close()
}

// writer is one of a row group that begins with these rows, nil are none.
func (g *groups) writer(buf *bytes.Buffer, first arrow.RecordBatch) (*pqarrow.FileWriter, *bytes.Buffer, error) {
	properties := []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1),
		parquet.WithMaxRowGroupLength(2 * groupRows), parquet.WithBatchSize(pieceRows)}
	if first != nil {
		for i, c := range first.Columns() {
			if !repetitive(c) {
				properties = append(properties, parquet.WithDictionaryFor(first.ColumnName(i), false))
			}
		}
	}
	out, err := pqarrow.NewFileWriter(g.schema, struct{ *bytes.Buffer }{buf}, parquet.NewWriterProperties(properties...),
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, nil, fmt.Errorf("columns of the read have no form in Parquet: %w", err)
	}
	return out, buf, nil
}

// sampled is how many values tell whether a dictionary pays.
const sampled = 512

// repetitive reports whether values come again so often that a dictionary of them is worth making: of a sample, at least half. What
// has members has dictionaries.
func repetitive(a arrow.Array) bool {
	switch a.(type) {
	case *array.Struct, array.ListLike, array.ExtensionArray:
		return true
	}
	step := max(1, a.Len()/sampled)
	seen := map[string]struct{}{}
	values := 0
	for i := 0; i < a.Len(); i += step {
		if a.IsValid(i) {
			seen[a.ValueStr(i)] = struct{}{}
			values++
		}
	}
	return 2*len(seen) <= values
}

func (g *groups) add(b bigquery.Block, emit func(chunk) error) error {
	batch, err := batchOf(g.message, b)
	if err != nil {
		return err
	}
	defer batch.Release()
	g.progress = b.Progress
	for at := int64(0); at < b.Rows; {
		rows, full := rowsWithin(batch, at, min(b.Rows, at+g.size.piece-g.rows), 8*pieceBytes-g.heldBits)
		g.held = append(g.held, batch.NewSlice(at, at+rows))
		g.heldBits += bitsOf(batch, at, at+rows)
		g.rows += rows
		at += rows
		if full || g.rows == g.size.piece {
			if err := g.piece(); err != nil {
				return err
			}
		}
		if g.outRows >= g.size.group || g.outBits >= g.size.groupBits {
			if err := g.group(emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece gives the writer what is held.
func (g *groups) piece() error {
	if g.rows == 0 {
		return nil
	}
	whole, err := joined(g.schema, g.held, g.rows)
	if err != nil {
		return err
	}
	defer whole.Release()
	if g.out == nil {
		if g.out, g.buf, err = g.writer(bytes.NewBuffer(g.bufs.take()), whole); err != nil {
			return err
		}
	}
	g.drop()
	g.outRows += g.rows
	g.outBits += g.heldBits
	g.rows, g.heldBits = 0, 0
	return g.out.WriteBuffered(whole)
}

func (g *groups) drop() {
	for _, b := range g.held {
		b.Release()
	}
	g.held = g.held[:0]
}

// joined is one batch of several, which the caller releases.
func joined(s *arrow.Schema, parts []arrow.RecordBatch, rows int64) (arrow.RecordBatch, error) {
	if len(parts) == 1 {
		parts[0].Retain()
		return parts[0], nil
	}
	columns := make([]arrow.Array, len(s.Fields()))
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i := range columns {
		pieces := make([]arrow.Array, len(parts))
		for j, p := range parts {
			pieces[j] = p.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(pieces, memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(s, columns, rows), nil
}

// group ends a row group.
func (g *groups) group(emit func(chunk) error) error {
	if err := g.out.Close(); err != nil {
		return err
	}
	meta, err := g.out.FileMetadata()
	if err != nil {
		return err
	}
	data := g.buf.Bytes()
	end := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	c := chunk{rows: g.outRows, parts: [][]byte{data[len(parquetMagic):end]}, group: meta, progress: g.progress,
		free: func() { g.bufs.give(data) }}
	g.out, g.buf, g.outRows, g.outBits = nil, nil, 0, 0
	return emit(c)
}

func (g *groups) end(emit func(chunk) error) error {
	if err := g.piece(); err != nil || g.out == nil {
		return err
	}
	return g.group(emit)
}

func (g *groups) close() { g.drop() }

// footer is the end of a Parquet file: where its row groups are.
type footer struct {
	all   *metadata.FileMetaData
	fresh []*metadata.FileMetaData // not noted yet, each placed
}

// newFooter is the footer of a file without rows.
func newFooter(message []byte) (*footer, error) {
	s, err := schemaOf(message)
	if err != nil {
		return nil, err
	}
	out, _, err := (&groups{schema: s}).writer(new(bytes.Buffer), nil)
	if err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	empty, err := out.FileMetadata()
	return &footer{all: empty}, err
}

// place puts a row group at an offset of the file.
func (f *footer) place(group *metadata.FileMetaData, offset int64) error {
	shift := offset - int64(len(parquetMagic))
	for _, g := range group.RowGroups {
		move(g.FileOffset, shift)
		for _, c := range g.Columns {
			if c.FileOffset > 0 {
				c.FileOffset += shift
			}
			c.MetaData.DataPageOffset += shift
			move(c.MetaData.DictionaryPageOffset, shift)
			move(c.MetaData.IndexPageOffset, shift)
		}
	}
	return f.add(group)
}

func move(offset *int64, shift int64) {
	if offset != nil && *offset > 0 {
		*offset += shift
	}
}

func (f *footer) add(placed *metadata.FileMetaData) error {
	for _, g := range placed.RowGroups {
		number := int16(len(f.all.RowGroups))
		g.Ordinal = &number
		if len(f.all.RowGroups) > 1<<15-1 {
			g.Ordinal = nil // it has no room for more
		}
		f.all.RowGroups = append(f.all.RowGroups, g)
		f.all.NumRows += g.NumRows
	}
	f.fresh = append(f.fresh, placed)
	return nil
}

// note is what was placed since the last note, as text.
func (f *footer) note() (string, error) {
	if len(f.fresh) == 0 {
		return "", nil
	}
	first := f.fresh[0]
	for _, more := range f.fresh[1:] {
		first.RowGroups = append(first.RowGroups, more.RowGroups...)
		first.NumRows += more.NumRows
	}
	f.fresh = nil
	var b bytes.Buffer
	if _, err := first.WriteTo(&b, nil); err != nil {
		return "", err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", err
	}
	defer w.Close()
	return base64.StdEncoding.EncodeToString(w.EncodeAll(b.Bytes(), nil)), nil
}

// restore takes what was noted.
func (f *footer) restore(note string) error {
	if note == "" {
		return nil
	}
	packed, err := base64.StdEncoding.DecodeString(note)
	if err != nil {
		return err
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := r.DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	placed, err := metadata.NewFileMetaData(data, nil)
	if err != nil {
		return err
	}
	err = f.add(placed)
	f.fresh = nil
	return err
}

// bytes are the end of the file.
func (f *footer) bytes() ([]byte, error) {
	var b bytes.Buffer
	n, err := f.all.WriteTo(&b, nil)
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32(b.Bytes(), uint32(n))
	return append(out, parquetMagic...), nil
}

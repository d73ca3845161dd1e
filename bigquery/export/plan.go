package export

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// session is a planned read, in Avro or in Arrow.
type session interface {
	Name() string
	Table() table.Destination
	Expires() time.Time
	Streams() int
	Estimate() (rows, bytes int64)
	Save() []byte
	BlockReader() *bigquery.BlockReader
}

// planned is a session and how its rows are written.
type planned struct {
	session
	encoder   func() (encoder, error) // for a lane
	parts     bool                    // encoders take blocks in parts
	container func() (container, error)
}

// plan plans the read, or restores the session that was saved.
func plan(ctx context.Context, from bigquery.Input, t target, o *Options, lanes int, saved []byte) (*planned, error) {
	size := o.size
	if size == (sizes{}) {
		size = usual(lanes)
	}
	if o.Format.inArrow() {
		return planArrow(ctx, from, o, size, saved)
	}
	src, err := bigquery.NewSource[struct{}](from, ignored{}, o.Source)
	if err != nil {
		return nil, err
	}
	var s *bigquery.ReadSession[struct{}]
	if saved != nil {
		s, err = src.Restore(saved)
	} else {
		s, err = src.Session(ctx)
	}
	if err != nil {
		return nil, err
	}
	if o.Format == Avro {
		// The marker between blocks only has to be unlikely in the data; the session's name makes it one of a kind.
		sum := sha256.Sum256([]byte(s.Name()))
		sync := sum[:16]
		return &planned{session: s, parts: true,
			encoder:   func() (encoder, error) { return blocks{sync}, nil },
			container: func() (container, error) { return wrapped{first: avroHeader(s.AvroSchema(), sync)}, nil }}, nil
	}
	return planText(s, t.compression, o, size)
}

// ignored is the deserializer of rows that are taken as blocks.
type ignored struct{}

func (ignored) Deserialize(*row.Row, func(struct{}) error) error { return nil }

func planText(s *bigquery.ReadSession[struct{}], packed compression, o *Options, size sizes) (*planned, error) {
	var head []byte
	line := Texts.csvLine
	texts := NewTexts(s.Schema())
	each := func(buf []byte, r *row.Row) ([]byte, error) { return line(texts, buf, r) }
	if o.Format == CSV {
		head = csvHeader(s.Schema())
	} else {
		var keys *jsonrow.Keys
		if o.Keys != nil {
			keys = o.Keys(s.Schema())
		}
		w := jsonrow.NewWriter(jsonrow.WriteOptions{Keys: keys})
		each = func(buf []byte, r *row.Row) ([]byte, error) {
			buf, err := w.AppendJSON(buf, r)
			return append(buf, '\n'), err
		}
	}
	if p, err := newPacker(packed); err != nil {
		return nil, err
	} else if p != nil && head != nil {
		head = p.pack(head)
	}
	enc := func() (encoder, error) {
		d, err := s.BlockDecoder()
		if err != nil {
			return nil, err
		}
		p, err := newPacker(packed)
		return &lines{decode: d.Next, line: each, pack: p, size: size, bufs: newBuffers(2 * chunkBytes)}, err
	}
	return &planned{session: s, encoder: enc, container: func() (container, error) { return wrapped{first: head}, nil }}, nil
}

func planArrow(ctx context.Context, from bigquery.Input, o *Options, size sizes, saved []byte) (*planned, error) {
	var s *bigquery.ArrowSession
	var err error
	if saved != nil {
		s, err = bigquery.RestoreArrow(saved, from, o.Source)
	} else {
		s, err = bigquery.ReadArrow(ctx, from, o.Source)
	}
	if err != nil {
		return nil, err
	}
	if o.Format == Arrow {
		cut := o.Source.Limit > 0
		return &planned{session: s, parts: !cut,
			encoder:   func() (encoder, error) { return messages{s.Schema(), cut}, nil },
			container: func() (container, error) { return wrapped{first: s.Schema(), last: []byte(endOfStream)}, nil }}, nil
	}
	return &planned{session: s,
		encoder: func() (encoder, error) { return newGroups(s.Schema(), size) },
		container: func() (container, error) {
			f, err := newFooter(s.Schema())
			return parquetFile{f}, err
		}}, nil
}

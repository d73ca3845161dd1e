package decode

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
)

// changes are the fields of a descriptor that carry change data capture, and what they said of the rows decoded so far.
type changes struct {
	kind, sequence *protoField // sequence is nil where the descriptor has none
	taken          []cdc.Change
}

// changeField reports whether a field of the row itself carries changes rather than a column, and remembers it if so.
func (c *compiler) changeField(f *protoField) (bool, error) {
	kind := strings.EqualFold(f.column, cdc.TypeColumn)
	if !kind && !strings.EqualFold(f.column, cdc.SequenceColumn) {
		return false, nil
	}
	if f.repeated || f.kind != protoreflect.StringKind {
		return true, c.mismatch(f.column, mode(f.repeated)+" "+kindName(f), "NULLABLE STRING")
	}
	if c.changes == nil {
		c.changes = &changes{}
	}
	slot := &c.changes.sequence
	if kind {
		slot = &c.changes.kind
	}
	if *slot != nil {
		return true, &SchemaError{Message: fmt.Sprintf("The input schema has more than one field for %s of table %s", strings.ToUpper(f.column), c.table)}
	}
	*slot = f
	return true, nil
}

// complete refuses sequence numbers without types.
func (c *changes) complete() error {
	if c != nil && c.kind == nil {
		return &SchemaError{Message: fmt.Sprintf("The input schema has %s, which needs %s beside it", cdc.SequenceColumn, cdc.TypeColumn)}
	}
	return nil
}

// decode reads what a row says of itself.
func (c *changes) decode(row []byte, inserts bool) error {
	kind, sequence, err := c.find(row)
	if err != nil {
		return err
	}
	if kind == nil {
		return fmt.Errorf("Field %s must be UPSERT or DELETE, and is not set.", cdc.TypeColumn)
	}
	var change cdc.Change
	var ok bool
	if change.Delete, ok = cdc.ParseType(string(kind)); !ok && !(inserts && string(kind) == "INSERT") {
		return fmt.Errorf("Field %s must be UPSERT or DELETE, got %s.", cdc.TypeColumn, quoted(kind))
	}
	if sequence != nil {
		if change.Sequence, err = cdc.ParseSequence(string(sequence)); err != nil {
			return err
		}
	}
	c.taken = append(c.taken, change)
	return nil
}

// quoted is a text of any length and bytes as a message shows it.
func quoted(b []byte) string {
	const most = 80
	if len(b) > most || !utf8.Valid(b) {
		return fmt.Sprintf("a text of %d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

// find looks for the last values of both fields, nil for one that is not set and has no default.
func (c *changes) find(row []byte) (kind, sequence []byte, err error) {
	if c.kind.hasFallback {
		kind = c.kind.fallback.data
	}
	if c.sequence != nil && c.sequence.hasFallback {
		sequence = c.sequence.fallback.data
	}
	for len(row) > 0 {
		number, wire, size := consumeTag(row)
		if size < 0 {
			return nil, nil, errWire
		}
		row = row[size:]
		value, size := consume(number, wire, row)
		if size < 0 {
			return nil, nil, errWire
		}
		row = row[size:]
		if wire != protowire.BytesType {
			continue
		}
		switch {
		case number == c.kind.number:
			kind = append([]byte{}, value.data...)
		case c.sequence != nil && number == c.sequence.number:
			sequence = append([]byte{}, value.data...)
		}
	}
	return kind, sequence, nil
}

// Changes reports whether the rows are changes.
func (p *Plan) Changes() bool { return p.changes != nil }

// TakeChanges hands over what the rows decoded since then say of themselves; nil where they are no changes. It goes with Take.
func (p *Plan) TakeChanges() []cdc.Change {
	if p.changes == nil {
		return nil
	}
	taken := p.changes.taken
	p.changes.taken = nil
	return taken
}

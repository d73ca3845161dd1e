package avrofile

import (
	"fmt"
	"math/big"

	"github.com/millrace-dev/millrace/localbq/internal/column"
)

// value makes a decoded value one of a record.
func (n *node) value(v any) (any, error) {
	if n.tag != "" {
		if v == nil {
			return nil, nil
		}
		tagged, ok := v.(map[string]any)
		if !ok {
			return nil, n.unexpected(v)
		}
		v = tagged[n.tag]
	}
	if v == nil {
		return nil, nil
	}
	switch n.kind {
	case "record":
		return n.record(v)
	case "array":
		return n.list(v)
	case "map":
		return n.entries(v)
	case "union":
		return n.variant(v)
	}
	return n.scalarValue(v)
}

func (n *node) unexpected(v any) error { return fmt.Errorf("a value of type %s is a %T", n.written, v) }

func (n *node) record(v any) (any, error) {
	values, ok := v.(map[string]any)
	if !ok {
		return nil, n.unexpected(v)
	}
	out := make(column.Record, 0, len(n.members))
	for _, m := range n.members {
		w, err := m.node.value(values[m.name])
		if err != nil {
			return nil, err
		}
		out = append(out, column.Member{Name: m.name, Value: w})
	}
	return out, nil
}

func (n *node) list(v any) (any, error) {
	values, ok := v.([]any)
	if !ok {
		return nil, n.unexpected(v)
	}
	out := make(column.List, 0, len(values))
	for _, e := range values {
		w, err := n.element.value(e)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// entries are a map's, by key: the file's order is not known any more.
func (n *node) entries(v any) (any, error) {
	values, ok := v.(map[string]any)
	if !ok {
		return nil, n.unexpected(v)
	}
	out := make(column.List, 0, len(values))
	for _, key := range sortedKeys(values) {
		w, err := n.element.value(values[key])
		if err != nil {
			return nil, err
		}
		out = append(out, column.Record{{Name: "key", Value: key}, {Name: "value", Value: w}})
	}
	return out, nil
}

// variant is a union's value: a record with one member.
func (n *node) variant(v any) (any, error) {
	tagged, ok := v.(map[string]any)
	if !ok {
		return nil, n.unexpected(v)
	}
	for _, m := range n.members {
		if w, ok := tagged[m.tag]; ok {
			out, err := m.node.value(w)
			return column.Record{{Name: m.name, Value: out}}, err
		}
	}
	return nil, n.unexpected(v)
}

func (n *node) scalarValue(v any) (any, error) {
	switch v := v.(type) {
	case int32:
		return n.integer(int64(v))
	case int64:
		return n.integer(v)
	case int:
		return n.integer(int64(v))
	case float32:
		return float64(v), nil
	case float64, bool, string:
		return v, nil
	case []byte:
		if n.logical == "decimal" {
			return column.Decimal{Unscaled: signed(v), Scale: n.scale}, nil
		}
		return v, nil
	}
	return nil, n.unexpected(v)
}

func (n *node) integer(v int64) (any, error) {
	switch n.logical {
	case "date":
		return column.Date(v), nil
	case "time-millis":
		return column.Time(v * 1000), nil
	case "time-micros":
		return column.Time(v), nil
	case "timestamp-micros":
		return column.Timestamp(v), nil
	case "local-timestamp-micros":
		return column.DateTime(v), nil
	}
	if n.logical == "" {
		return v, nil
	}
	if v > 1<<53 || v < -1<<53 {
		return nil, fmt.Errorf("%s of %d milliseconds is out of range", n.logical, v)
	}
	if n.logical == "timestamp-millis" {
		return column.Timestamp(v * 1000), nil
	}
	return column.DateTime(v * 1000), nil
}

// signed reads two's complement, the most significant byte first.
func signed(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

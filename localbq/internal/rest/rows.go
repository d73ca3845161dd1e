package rest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// rowFormat is how rows are written as JSON.
type rowFormat struct{ timestamps timestampFormat }

type timestampFormat uint8

const (
	seconds timestampFormat = iota // with six digits behind the point
	micros
	iso8601
)

// formatOf reads formatOptions.
func formatOf(useInt64 bool, output string) (rowFormat, error) {
	switch output {
	case "", "TIMESTAMP_OUTPUT_FORMAT_UNSPECIFIED":
		if useInt64 {
			return rowFormat{micros}, nil
		}
		return rowFormat{seconds}, nil
	case "FLOAT64":
		return rowFormat{seconds}, nil
	case "INT64":
		return rowFormat{micros}, nil
	case "ISO8601_STRING":
		return rowFormat{iso8601}, nil
	}
	return rowFormat{}, invalidParam("formatOptions.timestampOutputFormat", output, "FLOAT64, INT64 or ISO8601_STRING")
}

// appendRow writes row i of a batch: {"f":[{"v":…},…]}.
func (f rowFormat) appendRow(dst []byte, s *schema.Schema, b arrow.RecordBatch, i int) []byte {
	dst = append(dst, `{"f":[`...)
	for j, field := range s.Fields {
		if j > 0 {
			dst = append(dst, ',')
		}
		dst = f.appendCell(dst, field, b.Column(j), i)
	}
	return append(dst, "]}"...)
}

// appendCell writes {"v":…} of one column.
func (f rowFormat) appendCell(dst []byte, field *schema.Field, a arrow.Array, i int) []byte {
	dst = append(dst, `{"v":`...)
	list, repeated := a.(*array.List)
	switch {
	case repeated:
		dst = f.appendList(dst, field, list, i)
	case a.IsNull(i):
		dst = append(dst, "null"...)
	default:
		dst = f.appendValue(dst, field, a, i)
	}
	return append(dst, '}')
}

// appendList writes the elements of an array; a NULL array is an empty one.
func (f rowFormat) appendList(dst []byte, field *schema.Field, list *array.List, i int) []byte {
	dst = append(dst, '[')
	if list.IsValid(i) {
		from, to := list.ValueOffsets(i)
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"v":`...)
			if list.ListValues().IsNull(int(k)) {
				dst = append(dst, "null"...)
			} else {
				dst = f.appendValue(dst, field, list.ListValues(), int(k))
			}
			dst = append(dst, '}')
		}
	}
	return append(dst, ']')
}

// appendValue writes one value that is not NULL: a string, or the nested row of a struct.
func (f rowFormat) appendValue(dst []byte, field *schema.Field, a arrow.Array, i int) []byte {
	switch v := a.(type) {
	case *array.String:
		if field.Type == schema.Timestamp {
			return f.appendPicos(dst, v.Value(i))
		}
		return appendString(dst, v.Value(i))
	case *array.Struct:
		if field.Type == schema.Struct {
			return f.appendStruct(dst, field, v, i)
		}
	}
	dst = append(dst, '"')
	dst = text.AppendCell(dst, field, a, i, f.appendTimestamp) // of no text that needs escapes
	return append(dst, '"')
}

func (f rowFormat) appendStruct(dst []byte, field *schema.Field, a *array.Struct, i int) []byte {
	dst = append(dst, `{"f":[`...)
	for j, member := range field.Fields {
		if j > 0 {
			dst = append(dst, ',')
		}
		dst = f.appendCell(dst, member, a.Field(j), i)
	}
	return append(dst, "]}"...)
}

func (f rowFormat) appendTimestamp(dst []byte, at int64) []byte {
	switch f.timestamps {
	case micros:
		return strconv.AppendInt(dst, at, 10)
	case iso8601:
		return append(text.AppendDateTime(dst, at, 'T'), 'Z')
	}
	return text.AppendSeconds(dst, at)
}

// appendPicos writes a TIMESTAMP of picoseconds, which only the ISO form can tell whole.
func (f rowFormat) appendPicos(dst []byte, stored string) []byte {
	dst = append(dst, '"')
	if f.timestamps == iso8601 {
		dst = append(dst, stored...)
	} else {
		at, err := time.Parse(time.RFC3339Nano, stored[:len("2006-01-02T15:04:05.000000")]+"Z")
		if err != nil {
			panic(fmt.Sprintf("rest: a TIMESTAMP of picoseconds is held as %q", stored)) // the store has one form for them
		}
		dst = f.appendTimestamp(dst, at.UnixMicro())
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. The store holds valid UTF-8 only.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// maxPageBytes bounds a page of rows (BigQuery documentation, "Quotas and limits", "Maximum response size").
const maxPageBytes = 10_000_000

// appendRows writes rows from index start of a list of batches: at most limit rows (no limit where it is negative), and no
// more than a page holds, but always one. It answers the JSON array and how many rows are in it.
func (f rowFormat) appendRows(s *schema.Schema, batches []arrow.RecordBatch, start, limit int64) ([]byte, int64, error) {
	out := []byte{'['}
	rows := int64(0)
	for _, b := range batches {
		if start >= b.NumRows() {
			start -= b.NumRows()
			continue
		}
		for i := start; i < b.NumRows(); i++ {
			if rows == limit || rows > 0 && len(out) > maxPageBytes {
				return append(out, ']'), rows, nil
			}
			if rows > 0 {
				out = append(out, ',')
			}
			before := len(out)
			out = f.appendRow(out, s, b, int(i))
			if len(out)-before > 10*maxPageBytes {
				return nil, 0, refusal.New(refusal.Invalid, "Response too large to return: one row takes %d bytes", len(out)-before)
			}
			rows++
		}
		start = 0
	}
	return append(out, ']'), rows, nil
}

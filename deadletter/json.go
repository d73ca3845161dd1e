package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// AppendLine appends the letter as one line, JSON with a line end. What could steer a terminal is escaped, so that a file of
// lines can be looked at with any tool. Text that is not UTF-8 is mended, except the record, which is kept as it is.
func (l *Letter) AppendLine(buf []byte) ([]byte, error) { return appendLine(buf, l) }

// AppendSummary appends a line with what is known about the record and, in place of the record, what there is of it and how
// many bytes that has.
func (l *Letter) AppendSummary(buf []byte) ([]byte, error) {
	kind, payload := l.Payload()
	bare := *l
	bare.Record, bare.RecordBytes, bare.RowBytes, bare.Context = nil, nil, nil, ""
	return appendLine(buf, struct {
		Letter
		Payload Kind `json:"payload"`
		Bytes   int  `json:"bytes"`
	}{bare, kind, len(payload)})
}

func appendLine(buf []byte, v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // the record is to be read by people
	if err := enc.Encode(v); err != nil {
		return buf, err
	}
	return escape(buf, text.Bytes()), nil
}

// escape escapes what JSON may hold as it is and a terminal would obey.
func escape(buf, line []byte) []byte {
	from := 0
	for i := 0; i < len(line); {
		if c := line[i]; c < utf8.RuneSelf && c != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			buf = append(buf, line[from:i]...)
			buf = fmt.Appendf(buf, `\u%04x`, r)
			from = i + n
		}
		i += n
	}
	return append(buf, line[from:]...)
}

// ErrNoLetter is found in the error about a line that is no dead letter.
var ErrNoLetter = errors.New("no dead letter")

// ParseLine reads what AppendLine wrote, with or without its line end.
func ParseLine(line []byte) (Letter, error) {
	var l Letter
	if err := json.Unmarshal(line, &l); err != nil {
		return Letter{}, fmt.Errorf("%w: %w", ErrNoLetter, harmless(err))
	}
	if l.Time.IsZero() || l.Reason == "" && l.Connector == "" {
		return Letter{}, fmt.Errorf("%w: time, connector or reason is missing", ErrNoLetter)
	}
	return l, nil
}

// harmless keeps what kind of error it was: the text of some quotes values.
func harmless(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("the field %q has a value of another type", kind.Field)
	}
	return errors.New("a value of it cannot be read")
}

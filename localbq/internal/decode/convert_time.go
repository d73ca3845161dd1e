package decode

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/value"
)

func putDate(f *protoField, path string, v *fixed[int32]) put {
	switch f.kind {
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		read := integer(f.kind)
		return func(r raw) error {
			days := read(r.bits)
			if days < value.MinDate || days > value.MaxDate {
				return onField(path, "Date field value is out of range: %d", days)
			}
			v.append(int32(days))
			return nil
		}
	case protoreflect.StringKind:
		return func(r raw) error {
			days, err := value.Date(string(r.data))
			if err != nil {
				return onField(path, "%v", err)
			}
			v.append(days)
			return nil
		}
	}
	return nil
}

// putCivil is for TIME and DATETIME, which come packed or as text.
func putCivil(f *protoField, path string, v *fixed[int64], packed func(int64) (int64, error), text func(string) (int64, error)) put {
	var read func(raw) (int64, error)
	switch f.kind {
	case protoreflect.Int64Kind:
		read = func(r raw) (int64, error) { return packed(int64(r.bits)) }
	case protoreflect.StringKind:
		read = func(r raw) (int64, error) { return text(string(r.data)) }
	default:
		return nil
	}
	return func(r raw) error {
		micros, err := read(r)
		if err != nil {
			return onField(path, "%v", err)
		}
		v.append(micros)
		return nil
	}
}

func putTimestamp(f *protoField, path string, v *fixed[int64]) put {
	switch f.kind {
	case protoreflect.Int64Kind, protoreflect.Int32Kind, protoreflect.Uint32Kind:
		read := integer(f.kind)
		return func(r raw) error {
			micros := read(r.bits)
			if micros < value.MinTimestamp || micros > value.MaxTimestamp {
				return timestampRange(path, micros)
			}
			v.append(micros)
			return nil
		}
	case protoreflect.StringKind:
		return func(r raw) error {
			micros, err := value.Timestamp(string(r.data))
			if err != nil {
				return onField(path, "%v", err)
			}
			v.append(micros)
			return nil
		}
	}
	return nil
}

func timestampRange(path string, micros int64) error {
	return onField(path, "Timestamp field value is out of range: %d", micros)
}

// putPicos takes the text form, and microseconds from an integer.
func putPicos(f *protoField, path string, v *text) put {
	switch f.kind {
	case protoreflect.StringKind:
		return func(r raw) error {
			s, err := value.TimestampPicos(string(r.data))
			if err != nil {
				return onField(path, "%v", err)
			}
			v.append([]byte(s))
			return nil
		}
	case protoreflect.Int64Kind:
		return func(r raw) error {
			micros := int64(r.bits)
			if micros < value.MinTimestamp || micros > value.MaxTimestamp {
				return timestampRange(path, micros)
			}
			v.append([]byte(value.FormatPicos(micros, 0)))
			return nil
		}
	}
	return nil
}

// span is the vector of INTERVAL: months, days, microseconds.
type span struct {
	group
	months, days *fixed[int32]
	micros       *fixed[int64]
}

func newSpan() *span {
	s := &span{months: newInt32(), days: newInt32(), micros: newInt64()}
	s.members = []vector{s.months, s.days, s.micros}
	return s
}

func (s *span) append(v value.Span) {
	s.months.append(v.Months)
	s.days.append(v.Days)
	s.micros.append(v.Micros)
	s.valid()
}

func putInterval(f *protoField, path string, v *span) put {
	if !isString(f) {
		return nil
	}
	return func(r raw) error {
		s, err := value.Interval(string(r.data))
		if err != nil {
			return onField(path, "%v", err)
		}
		v.append(s)
		return nil
	}
}

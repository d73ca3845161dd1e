package table

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a schema (BigQuery documentation, "Quotas and limits", "Standard tables" and "Column names").
const (
	MaxDepth      = 15     // levels of STRUCT
	MaxColumns    = 10_000 // columns of a table, members of STRUCTs included
	MaxNameLength = 300    // characters of a column name
)

// The classes of schema faults.
const (
	FaultEmpty  = "C-EMPTY"  // a table or a STRUCT without columns
	FaultCase   = "C-CASE"   // sibling names equal ignoring case
	FaultName   = "C-NAME"   // a name BigQuery refuses
	FaultType   = "C-TYPE"   // no type, or a RANGE without its element
	FaultDepth  = "C-DEPTH"  // more than MaxDepth levels of STRUCT
	FaultSchema = "C-SCHEMA" // anything else that contradicts itself
)

// Fault is one thing that is wrong with a schema.
type Fault struct {
	Kind string // one of the Fault constants
	Path string // dotted; "" is the table itself
	Msg  string
}

func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Kind + ": " + f.Msg
	}
	return f.Kind + ": column " + legible(f.Path) + ": " + f.Msg
}

// legible quotes a path with characters that cannot be seen, so that a message stays on its line.
func legible(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// Validate checks the schema against what BigQuery accepts and returns every *Fault it has, joined; nil means none.
func (s *Schema) Validate() error {
	if s == nil || len(s.Fields) == 0 {
		return &Fault{FaultEmpty, "", "a table needs at least one column"}
	}
	var c checker
	c.fields(s.Fields, "", 0)
	if c.columns > MaxColumns {
		c.fault(FaultSchema, "", "has %d columns, members of STRUCTs included: expected at most %d", c.columns, MaxColumns)
	}
	return errors.Join(c.faults...)
}

type checker struct {
	faults  []error
	columns int
}

func (c *checker) fault(kind, path, format string, args ...any) {
	c.faults = append(c.faults, &Fault{kind, path, fmt.Sprintf(format, args...)})
}

// fields checks siblings that lie below depth STRUCTs.
func (c *checker) fields(fields []Field, parent string, depth int) {
	names := make(map[string]string, len(fields))
	for i := range fields {
		f := &fields[i]
		path := Join(parent, f.Name)
		if f.Name == "" {
			path = Join(parent, fmt.Sprintf("[%d]", i))
		}
		c.columns++
		if err := CheckName(f.Name); err != nil {
			c.fault(FaultName, path, "the name %v", err)
		}
		key := FoldName(f.Name)
		if first, twice := names[key]; twice && f.Name != "" {
			c.fault(FaultCase, path, "is the same name as %q: BigQuery ignores case", first)
		} else {
			names[key] = f.Name
		}
		c.field(f, path, depth)
	}
}

func (c *checker) field(f *Field, path string, depth int) {
	if f.Type == 0 || f.Type > Struct {
		c.fault(FaultType, path, "has no type: expected one of %s", strings.Join(typeNames[1:], ", "))
		return
	}
	if f.Mode > Repeated {
		c.fault(FaultSchema, path, "has the mode %v: expected NULLABLE, REQUIRED or REPEATED", f.Mode)
	}
	c.members(f, path, depth)
	c.rangeElement(f, path)
	c.attributes(f, path)
	c.decimal(f, path)
}

func (c *checker) members(f *Field, path string, depth int) {
	switch {
	case f.Type != Struct:
		if len(f.Fields) > 0 {
			c.fault(FaultSchema, path, "is %v and has members: only STRUCT has", f.Type)
		}
	case depth >= MaxDepth:
		c.fault(FaultDepth, path, "lies below %d STRUCTs: expected at most %d levels", depth, MaxDepth)
	case len(f.Fields) == 0:
		c.fault(FaultEmpty, path, "is a STRUCT without members")
	default:
		c.fields(f.Fields, path, depth+1)
	}
}

func (c *checker) rangeElement(f *Field, path string) {
	switch {
	case f.Type != Range && f.Range != 0:
		c.fault(FaultSchema, path, "is %v and has a range element: only RANGE has", f.Type)
	case f.Type == Range && f.Range != Date && f.Range != DateTime && f.Range != Timestamp:
		c.fault(FaultType, path, "is a RANGE of %s: expected DATE, DATETIME or TIMESTAMP", elementName(f.Range))
	}
}

func elementName(t Type) string {
	if t == 0 {
		return "nothing"
	}
	return t.String()
}

func (c *checker) attributes(f *Field, path string) {
	if f.MaxLength < 0 || f.MaxLength > 0 && f.Type != String && f.Type != Bytes {
		c.fault(FaultSchema, path, "has the maximum length %d: expected a positive one, and STRING or BYTES", f.MaxLength)
	}
	if p := f.TimestampPrecision; p != 0 && (f.Type != Timestamp || p != 6 && p != 12) {
		c.fault(FaultSchema, path, "has the timestamp precision %d: expected 6 or 12, and TIMESTAMP", p)
	}
	if f.Collation != "" && f.Type != String {
		c.fault(FaultSchema, path, "is %v and has a collation: only STRING has", f.Type)
	}
	if f.RoundingMode == "" {
		return
	}
	if f.Type != Numeric && f.Type != BigNumeric {
		c.fault(FaultSchema, path, "is %v and has a rounding mode: only NUMERIC and BIGNUMERIC have", f.Type)
	}
	if !slices.Contains([]string{"ROUND_HALF_AWAY_FROM_ZERO", "ROUND_HALF_EVEN"}, f.RoundingMode) {
		c.fault(FaultSchema, path, "has the rounding mode %q: expected ROUND_HALF_AWAY_FROM_ZERO or ROUND_HALF_EVEN", f.RoundingMode)
	}
}

// DecimalDigits is how many digits NUMERIC or BIGNUMERIC keeps at most before and behind the point; 0, 0 for other
// types. (BigQuery documentation, "Parameterized decimal types".)
func (t Type) DecimalDigits() (integer, fraction int64) {
	switch t {
	case Numeric:
		return 29, 9
	case BigNumeric:
		return 38, 38
	}
	return 0, 0
}

func (c *checker) decimal(f *Field, path string) {
	if f.Precision == 0 && f.Scale == 0 {
		return
	}
	integer, fraction := f.Type.DecimalDigits()
	switch {
	case fraction == 0:
		c.fault(FaultSchema, path, "is %v and has a precision: only NUMERIC and BIGNUMERIC have", f.Type)
	case f.Precision == 0:
		c.fault(FaultSchema, path, "has the scale %d and no precision", f.Scale)
	case f.Scale < 0 || f.Scale > fraction:
		c.fault(FaultSchema, path, "has the scale %d: expected 0 to %d for %v", f.Scale, fraction, f.Type)
	case f.Precision < max(1, f.Scale) || f.Precision > f.Scale+integer:
		c.fault(FaultSchema, path, "has the precision %d: expected %d to %d for %v with the scale %d",
			f.Precision, max(1, f.Scale), f.Scale+integer, f.Type, f.Scale)
	}
}

// Join is the dotted path of a member.
func Join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// FoldName maps names that BigQuery takes for the same to one string, by Unicode simple folding, whatever the locale.
func FoldName(s string) string { return string(AppendFoldName(nil, []byte(s))) }

// AppendFoldName appends the FoldName of a name.
func AppendFoldName(buf, name []byte) []byte {
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			buf = append(buf, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(name[i:])
		buf = utf8.AppendRune(buf, foldRune(r))
		i += n
	}
	return buf
}

// foldRune picks one rune of an orbit: the lower-case ASCII letter where there is one, else the smallest.
func foldRune(r rune) rune {
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		if o < utf8.RuneSelf {
			return unicode.ToLower(o)
		}
		least = min(least, o)
	}
	return least
}

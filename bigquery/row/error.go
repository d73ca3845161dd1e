package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the class of a row error; see docs/reference/errors.md.
type Kind string

const (
	KindRequired  Kind = "R-REQUIRED"  // no value for a REQUIRED column
	KindNullElem  Kind = "R-NULLELEM"  // null inside a repeated value
	KindNullKey   Kind = "R-NULLKEY"   // null map key
	KindRange     Kind = "R-RANGE"     // value outside the column's range
	KindScale     Kind = "R-SCALE"     // too many fractional digits
	KindType      Kind = "R-TYPE"      // value of the wrong type
	KindText      Kind = "R-TEXT"      // text is not valid UTF-8
	KindJSON      Kind = "R-JSON"      // not exactly one JSON object
	KindMulti     Kind = "R-MULTI"     // more than one JSON value in a record
	KindEmptyDoc  Kind = "R-EMPTYDOC"  // {} at the top level
	KindUnknown   Kind = "R-UNKNOWN"   // field the schema lacks
	KindDuplicate Kind = "R-DUPKEY"    // key twice, ignoring case
	KindPrint     Kind = "R-PRINT"     // protobuf message that has no JSON form
	KindProvider  Kind = "R-PROVIDER"  // the function of an added column failed
	KindSchema    Kind = "C-SCHEMA"    // schema that cannot be derived or used
	KindEmpty     Kind = "C-EMPTY"     // table or STRUCT without columns
	KindCase      Kind = "C-CASE"      // sibling names equal ignoring case
	KindName      Kind = "C-NAME"      // illegal column name
	KindColType   Kind = "C-TYPE"      // type without a column form
	KindRecursive Kind = "C-RECURSIVE" // type that contains itself
	KindArray     Kind = "C-ARRAY"     // list of lists, or of values that may be NULL
	KindDepth     Kind = "C-DEPTH"     // more than 15 STRUCT levels
	KindDesc      Kind = "C-DESC"      // descriptor and schema disagree
	KindPath      Kind = "C-PATH"      // marker path that no field has
	KindMark      Kind = "C-MARK"      // marker on a field that cannot carry it
	KindBoth      Kind = "C-BOTH"      // field marked as JSON and as GEOGRAPHY
	KindOptNum    Kind = "C-OPTNUM"    // illegal or doubly used option number
	KindOptType   Kind = "C-OPTTYPE"   // field option that is no singular bool
	KindUnion     Kind = "C-UNION"     // Avro union without exactly one type beside null
	KindLogical   Kind = "C-LOGICAL"   // logical type that BigQuery cannot keep
	KindDecimal   Kind = "C-DECIMAL"   // decimal beyond BIGNUMERIC
	KindRoot      Kind = "C-ROOT"      // record schema that is no record, or cannot be read
	KindField     Kind = "C-FIELD"     // bad declaration of an added column
	KindHeader    Kind = "C-HEADER"    // header of a file that does not fit the table
	KindDecode    Kind = "D-TYPE"      // value or schema shape mismatch when reading
	KindOverflow  Kind = "D-OVERFLOW"  // value does not fit the declared type
	KindResolve   Kind = "D-SCHEMA"    // schemas of writer and reader that do not resolve
	KindNull      Kind = "D-NULL"      // null where the reader allows none
	KindInterval  Kind = "D-INTERVAL"  // INTERVAL column read into a type of SQL, which has none for it
)

// Configuration says whether errors of this kind are mistakes of configuration, which end a job, and no fault of a record.
// A record of a table for which no schema is known is the exception: it is wrong by itself.
func (k Kind) Configuration() bool { return strings.HasPrefix(string(k), "C-") && k != KindSchema }

// Error says which field of a record, or of a schema, is wrong and why. It never quotes the record's contents.
type Error struct {
	Kind Kind
	Path string // dotted, with indexes: "items[2].price"; "" is the record itself
	// Offset is where in the record the fault is, in bytes from its start; -1 where that means nothing.
	Offset int64
	Msg    string
}

func (e *Error) Error() string {
	s := string(e.Kind) + ": "
	if e.Path != "" {
		s += "field " + e.Path + ": "
	}
	s += e.Msg
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (at byte %d of the record)", e.Offset)
	}
	return s
}

// Within puts the name of a field before the path, and returns e.
func (e *Error) Within(name string) *Error {
	if e.Path == "" || e.Path[0] == '[' {
		e.Path = name + e.Path
	} else {
		e.Path = name + "." + e.Path
	}
	return e
}

// Element puts the index of an element before the path, and returns e.
func (e *Error) Element(i int) *Error {
	if e.Path != "" && e.Path[0] != '[' {
		e.Path = "." + e.Path
	}
	e.Path = "[" + strconv.Itoa(i) + "]" + e.Path
	return e
}

// ValueError says why a value has no form in a column. It knows no field; formats add one, by At. The errors
// that this package's own conversions return are made once, so that a record full of faults costs no memory.
type ValueError struct {
	Kind Kind
	Msg  string // what was expected; never the value
}

func (e *ValueError) Error() string { return string(e.Kind) + ": " + e.Msg }

// At turns a conversion's error into the error of a field. An err that is no *ValueError is taken for a value of the wrong
// type.
func At(err error, path string, offset int64) *Error {
	var v *ValueError
	if errors.As(err, &v) {
		return &Error{Kind: v.Kind, Path: path, Offset: offset, Msg: v.Msg}
	}
	return &Error{Kind: KindType, Path: path, Offset: offset, Msg: err.Error()}
}

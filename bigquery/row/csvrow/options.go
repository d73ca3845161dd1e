package csvrow

import (
	"errors"
	"fmt"
	"strings"
)

// Options say how records are written. The zero value is RFC 4180 with an empty cell for NULL.
type Options struct {
	// Delimiter stands between cells: a comma by default, any ASCII character but the quote and line ends.
	Delimiter byte
	// Quote encloses cells: a double quote by default.
	Quote byte
	// NoQuotes says that no character encloses cells; then no cell holds a delimiter or a line end.
	NoQuotes bool
	// NullMarkers are the texts of unquoted cells that mean NULL. By default the empty text does; with NullMarkers the empty
	// text is a text, and no value of another type, unless it is among them.
	NullMarkers []string
	// AllowJaggedRows takes records with fewer cells than columns: the last columns are NULL.
	AllowJaggedRows bool
	// IgnoreUnknown drops cells beyond the last column and columns of the header that the table lacks.
	IgnoreUnknown bool
	// TimestampNumbers says what whole numbers mean in TIMESTAMP columns. By default they are errors: a number says neither
	// that it is a time nor in which unit.
	TimestampNumbers TimestampNumbers
}

// TimestampNumbers is what a whole number means in a TIMESTAMP column.
type TimestampNumbers uint8

const (
	RejectNumbers   TimestampNumbers = iota // nothing: an error
	Seconds                                 // seconds since 1970
	Millis                                  // milliseconds since 1970
	Micros                                  // microseconds since 1970
	lastTimeNumbers = Micros
)

// Validate reports every fault of the options.
func (o Options) Validate() error {
	_, err := o.resolve()
	return err
}

// resolve fills in defaults and reports every fault.
func (o Options) resolve() (Options, error) {
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	if o.Quote == 0 {
		o.Quote = '"'
	}
	if o.NullMarkers == nil {
		o.NullMarkers = []string{""}
	}
	var faults []error
	for name, c := range map[string]byte{"Delimiter": o.Delimiter, "Quote": o.Quote} {
		if c >= 0x80 || c == '\n' || c == '\r' {
			faults = append(faults, fmt.Errorf("csv: %s %q: expected one ASCII character that is no line end", name, c))
		}
	}
	if o.Delimiter == o.Quote && !o.NoQuotes {
		faults = append(faults, fmt.Errorf("csv: Delimiter and Quote are both %q", o.Quote))
	}
	for _, m := range o.NullMarkers {
		if strings.ContainsAny(m, "\n\r") || strings.IndexByte(m, o.Delimiter) >= 0 {
			faults = append(faults, fmt.Errorf("csv: NullMarkers has %q, which no unquoted cell can be", m))
		}
	}
	if o.TimestampNumbers > lastTimeNumbers {
		faults = append(faults, fmt.Errorf("csv: TimestampNumbers %d is out of range", o.TimestampNumbers))
	}
	return o, errors.Join(faults...)
}

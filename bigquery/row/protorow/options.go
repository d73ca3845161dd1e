package protorow

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
)

// Options says how a message type becomes a schema. The zero value is the default.
type Options struct {
	// DeriveRequired makes columns REQUIRED that cannot be NULL: fields without presence, and proto2's required ones.
	// REQUIRED columns can be relaxed later, but never added to a table that exists.
	DeriveRequired bool

	// JSONPaths and GeographyPaths name fields that become JSON and GEOGRAPHY columns, by their declared names from the
	// root: "event.details", and "labels.value" for the values of a map. A path that no field has is an error.
	//
	// JSON goes on strings, which are taken for JSON text as they are, and on messages, which are printed as protobuf's
	// JSON. GEOGRAPHY goes on strings. The text is not looked at here: BigQuery refuses what is no JSON, WKT or GeoJSON.
	JSONPaths      []string
	GeographyPaths []string

	// JSONOptions and GeographyOptions are field options: bool extensions of google.protobuf.FieldOptions. Every field, at
	// any depth, that carries one as true becomes such a column. An option of that number and another name is another
	// option, wherever the declaration can be seen.
	JSONOptions      []protoreflect.ExtensionType
	GeographyOptions []protoreflect.ExtensionType

	// JSONOptionNumbers and GeographyOptionNumbers are field options by their numbers alone, from 1000 to 536870911. No
	// field need carry them, so a number that is mistyped changes nothing: look at Schema once.
	JSONOptionNumbers      []protowire.Number
	GeographyOptionNumbers []protowire.Number

	// AnyResolver finds the types of google.protobuf.Any inside of messages that are printed as JSON. By default none is
	// found, so that a row does not depend on what happens to be linked into the program.
	AnyResolver AnyResolver
}

// AnyResolver finds message types by URL; *protoregistry.Types is one, and protoregistry.GlobalTypes holds all that are
// linked into the program.
type AnyResolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// fieldOption is a field option that marks fields.
type fieldOption struct {
	number protowire.Number
	name   protoreflect.FullName // "": any name
	mark   mark.Mark
}

func (o *fieldOption) String() string {
	if o.name == "" {
		return fmt.Sprintf("the %v option %d", o.mark, o.number)
	}
	return fmt.Sprintf("the %v option %s = %d", o.mark, o.name, o.number)
}

// fieldOptions returns one option for each number, or every fault of the options.
func (o *Options) fieldOptions() ([]fieldOption, error) {
	var c optionCollector
	c.types(o.JSONOptions, mark.JSON)
	c.types(o.GeographyOptions, mark.Geography)
	c.numbers(o.JSONOptionNumbers, mark.JSON)
	c.numbers(o.GeographyOptionNumbers, mark.Geography)
	return c.options, errors.Join(c.faults...)
}

type optionCollector struct {
	options []fieldOption
	faults  []error
}

func (c *optionCollector) types(types []protoreflect.ExtensionType, m mark.Mark) {
	for _, t := range types {
		if t == nil {
			c.fault(row.KindOptType, fmt.Sprintf("a %v option is nil", m))
			continue
		}
		d := t.TypeDescriptor()
		o := fieldOption{d.Number(), d.FullName(), m}
		if d.ContainingMessage().FullName() != fieldOptionsName || !singularBool(d) {
			c.fault(row.KindOptType, o.String()+" is no singular bool extension of "+fieldOptionsName)
			continue
		}
		c.add(o)
	}
}

func (c *optionCollector) numbers(numbers []protowire.Number, m mark.Mark) {
	for _, n := range numbers {
		c.add(fieldOption{number: n, mark: m})
	}
}

// add keeps one option of each number: a named one before a bare one, and the last of two names.
func (c *optionCollector) add(o fieldOption) {
	const most = 1<<29 - 1 // descriptor.proto: extensions 1000 to max
	if o.number < 1000 || o.number > most || o.number >= protowire.FirstReservedNumber && o.number <= protowire.LastReservedNumber {
		c.fault(row.KindOptNum, fmt.Sprintf("%v: expected a number from 1000 to %d, and none from %d to %d",
			&o, most, protowire.FirstReservedNumber, protowire.LastReservedNumber))
		return
	}
	for i := range c.options {
		known := &c.options[i]
		if known.number != o.number {
			continue
		}
		if known.mark != o.mark {
			c.fault(row.KindOptNum, fmt.Sprintf("%v and %v are one number: expected one meaning", known, &o))
		} else if o.name != "" {
			known.name = o.name
		}
		return
	}
	c.options = append(c.options, o)
}

func (c *optionCollector) fault(kind row.Kind, msg string) {
	c.faults = append(c.faults, &row.Error{Kind: kind, Offset: -1, Msg: msg})
}

package job

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
)

// Delay is a duration whose zero is said with none or 0s, since a key that is not there means the default.
type Delay time.Duration

func (d *Delay) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "none" {
		*d = Delay(bigquery.NoDelay)
		return nil
	}
	v, err := time.ParseDuration(s)
	switch {
	case err != nil || v < 0:
		return fmt.Errorf("%q is no delay: expected none, or a duration such as 500ms or 10s", s)
	case v == 0:
		v = bigquery.NoDelay
	}
	*d = Delay(v)
	return nil
}

func (d Delay) MarshalText() ([]byte, error) {
	if d == Delay(bigquery.NoDelay) {
		return []byte("none"), nil
	}
	return []byte(time.Duration(d).String()), nil
}

// knobs are options of Go with the values of the section of a job file that has the same names. Those that are words in the one and
// constants in the other are left out.
func knobs[O any](section any) (o O) {
	from, to := reflect.ValueOf(section), reflect.ValueOf(&o).Elem()
	for f, v := range from.Fields() {
		if field := to.FieldByName(f.Name); v.CanConvert(field.Type()) {
			field.Set(v.Convert(field.Type()))
		}
	}
	return o
}

// setZero checks a section of knobs for values that were given and are zero: they would pass for the default.
func (c checker) setZero(section string, s any) {
	v := reflect.ValueOf(s)
	for i, key := range keysOf(v.Type()) {
		at := section + "." + key
		if !v.Field(i).IsZero() || !c.there(at) || !c.sound(at) || !counts(v.Field(i).Kind()) || v.Type().Field(i).Tag.Get("zero") == "good" {
			continue
		}
		if v.Field(i).Type() == durationType {
			c.fault(at, "must be at least 1ms: 0s")
			continue
		}
		c.fault(at, "must be positive: 0")
	}
}

// counts reports whether a kind is a number.
func counts(k reflect.Kind) bool {
	return k == reflect.Int || k == reflect.Int64 || k == reflect.Float64
}

var optionName = regexp.MustCompile(`\b(DefaultStream|BufferedStream|FileLoads|Connection)\.([A-Z]\w*)|^(GRPCEndpoint|RESTEndpoint|StorageEndpoint|KeyFile|QuotaProject)\b`)

// sinkFault is a fault of the sink's options in the words of the job file: the key, where there is one, and what is wrong.
func sinkFault(line string) (key, msg string) {
	const section = "sink.bigquery"
	line = strings.TrimSpace(line)
	msg = optionName.ReplaceAllStringFunc(line, func(name string) string {
		parent, option, ok := strings.Cut(name, ".")
		if !ok {
			parent, option = "Connection", name
		}
		return section + "." + keyOf(parent) + "." + keyOf(option)
	})
	if first, rest, _ := strings.Cut(msg, " "); msg != line && strings.HasPrefix(first, section) {
		return first, rest
	}
	return section, msg
}

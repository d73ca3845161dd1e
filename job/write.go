package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// YAML writes a job file, as Parse reads it. What has its zero value is left out.
func (f *File) YAML() []byte {
	var b strings.Builder
	writeFields(&b, reflect.ValueOf(f).Elem(), "")
	return []byte(b.String())
}

func writeFields(b *strings.Builder, v reflect.Value, indent string) {
	keys := keysOf(v.Type())
	for i, key := range keys {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		switch {
		case f.Kind() == reflect.Struct && f.IsZero():
			fmt.Fprintf(b, "%s%s: {}\n", indent, key)
		case f.Kind() == reflect.Struct:
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			writeFields(b, f, indent+"  ")
		default:
			fmt.Fprintf(b, "%s%s: %s\n", indent, key, flow(f))
		}
	}
}

// flow writes a value on one line. JSON is YAML, and its quotes keep text from being taken for something else.
func flow(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return d.String()
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		panic(fmt.Sprintf("job: no way to write a %s: %v", v.Type(), err)) // no such field exists
	}
	return string(text)
}

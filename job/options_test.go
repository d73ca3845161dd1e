package job

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestOptionsPage holds docs/reference/options.md to the structs, both ways.
func TestOptionsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/options.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if documented[m[1]] {
			t.Errorf("%s is on the page twice", m[1])
		}
		documented[m[1]] = true
	}
	known := map[string]bool{}
	collectKeys(reflect.TypeFor[File](), "", known)
	for key := range known {
		if !documented[key] && key != "source" && key != "sink" {
			t.Errorf("%s is not on the page", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("the page has %s, which is no key", key)
		}
	}
	if len(known) < 40 {
		t.Errorf("found %d keys: the collection is broken", len(known))
	}
}

func collectKeys(t reflect.Type, parent string, into map[string]bool) {
	for i, key := range keysOf(t) {
		at := joinKey(parent, key)
		into[at] = true
		f := t.Field(i).Type
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f != reflect.TypeFor[time.Time]() {
			collectKeys(f, at, into)
		}
	}
}

// TestOneVocabulary: whatever the sink's options are in Go, the job file has under the same name, and nothing else.
func TestOneVocabulary(t *testing.T) {
	for name, c := range map[string]struct {
		section, options any
		onlyKeys, onlyGo []string
	}{
		"sink":            {BigQuery{}, bigquery.SinkOptions{}, []string{"Table", "Schema"}, nil},
		"source":          {Read{}, bigquery.SourceOptions{}, []string{"Table", "Query"}, []string{"ReaderSchema"}}, // the sink's schema says what rows are
		"default stream":  {DefaultStream{}, bigquery.DefaultStreamOptions{}, nil, nil},
		"buffered stream": {BufferedStream{}, bigquery.BufferedStreamOptions{}, nil, nil},
		"schema update":   {SchemaUpdate{}, bigquery.SchemaUpdate{}, nil, nil},
		"create":          {Create{}, table.CreateOptions{}, []string{"Disposition", "Datasets"}, []string{"ExpirationMs"}},
		"file loads":      {FileLoads{}, bigquery.FileLoadOptions{}, nil, []string{"Parquet", "Custom"}},
		"connection":      {Connection{}, bigquery.Connection{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			keys, options := fieldNames(c.section), fieldNames(c.options)
			for key := range keys {
				if !options[key] && !slices.Contains(c.onlyKeys, key) {
					t.Errorf("the job file has %s, which is no option", key)
				}
			}
			for option := range options {
				if !keys[option] && !slices.Contains(c.onlyGo, option) {
					t.Errorf("the job file has no key for %s", option)
				}
			}
		})
	}
}

func fieldNames(v any) map[string]bool {
	names := map[string]bool{}
	for f := range reflect.TypeOf(v).Fields() {
		names[f.Name] = true
	}
	return names
}

package job

import (
	"cmp"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
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
		"source":          {Read{}, bigquery.SourceOptions{}, []string{"Table", "Query"}, []string{"ReaderSchema", "ArrowCompression"}}, // the sink's schema says what rows are, and they are read in Avro
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

// TestEveryKeyReachesItsOption: whatever is said in the job file is said to the sink and to the source, every field of it.
func TestEveryKeyReachesItsOption(t *testing.T) {
	b := filled[BigQuery]()
	var got []bigquery.SinkOptions
	for _, b.Method = range []string{"default", "exactly-once", "file-loads"} {
		got = append(got, b.sinkOptions())
	}
	b.FileLoads.StagingFormat, b.Create.Disposition = "parquet", "never"
	never := b.sinkOptions()
	read := filled[Read]()
	source := read.options()
	source.Connection = b.Connection.options()
	for name, c := range map[string]struct {
		options any
		unset   []string // that the job sets elsewhere, or that only Go has
	}{
		"sink": {got[0], []string{"Method", "Create.Disposition", "Create.Options.Partition.Start", "Create.Options.Partition.End", "Create.Options.Partition.Interval",
			"Create.PerDestination", "Failures", "Connection.GRPCEndpoint", "Connection.RESTEndpoint", "Connection.StorageEndpoint", "Connection.KeyFile",
			"Connection.QuotaProject", "BufferedStream.*", "FileLoads.*"}},
		"buffered stream": {got[1].BufferedStream, nil},
		"file loads":      {never.FileLoads, []string{"Custom"}},
		"of choices": {struct {
			Never bigquery.Disposition
			Loads bigquery.Method
		}{never.Create.Disposition, got[2].Method}, nil},
		"source": {source, []string{"ReaderSchema", "ArrowCompression"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range zeros(reflect.ValueOf(c.options), "") {
				room, _, _ := strings.Cut(path, ".")
				if !slices.Contains(c.unset, path) && !slices.Contains(c.unset, room+".*") {
					t.Errorf("no key reaches %s", path)
				}
			}
		})
	}
}

// filled is a section with something in every key, the last of those that a key may be.
func filled[S any]() (s S) {
	fill(reflect.ValueOf(&s).Elem(), "")
	return s
}

func fill(v reflect.Value, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.String:
		choices := strings.Split(tag.Get("one"), ",")
		v.SetString(cmp.Or(choices[len(choices)-1], "x"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
		if v.Type() == durationType {
			v.SetInt(7 * int64(time.Second))
		}
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), "")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), "")
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(7, 0)))
			return
		}
		for f, field := range v.Fields() {
			fill(field, f.Tag)
		}
	default:
		panic(v.Type())
	}
}

// zeros are the paths to fields that hold nothing.
func zeros(v reflect.Value, parent string) (paths []string) {
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]() {
		if v.IsZero() {
			return []string{parent}
		}
		return nil
	}
	for f, field := range v.Fields() {
		paths = append(paths, zeros(field, strings.TrimPrefix(parent+"."+f.Name, "."))...)
	}
	return paths
}

func fieldNames(v any) map[string]bool {
	names := map[string]bool{}
	for f := range reflect.TypeOf(v).Fields() {
		names[f.Name] = true
	}
	return names
}

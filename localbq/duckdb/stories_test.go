//go:build cgo

package duckdb

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of testdata anew")

// people and events are the tables of the stories.
func stories(t testing.TB) memoryCatalog {
	c := memoryCatalog{}
	c.add(t, "p:d.t", `[
		{"id": 1, "name": "a", "tags": ["x", "y"], "items": [{"sku": "s1", "price": 1.5}, {"sku": "s2", "price": 2}],
		 "j": "{\"a\":{\"b\":\"c\"},\"n\":[1,2]}", "created": "2020-01-01T00:00:00Z", "n": "1.5"},
		{"id": 2, "name": "b", "tags": [], "items": [], "j": "{\"a\":null}", "created": "2020-02-01T00:00:00Z", "n": "2.25"},
		{"id": 3, "name": null, "tags": ["z"], "items": [{"sku": "s3", "price": 3}]}]`,
		&schema.Field{Name: "id", Type: schema.Int64, Mode: schema.Required}, &schema.Field{Name: "name", Type: schema.String},
		&schema.Field{Name: "tags", Type: schema.String, Mode: schema.Repeated},
		&schema.Field{Name: "items", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{
			{Name: "sku", Type: schema.String}, {Name: "price", Type: schema.Float64},
		}},
		&schema.Field{Name: "j", Type: schema.JSON}, &schema.Field{Name: "created", Type: schema.Timestamp},
		&schema.Field{Name: "n", Type: schema.Numeric})
	c.add(t, "p:d.events", `[
		{"Kind": "push", "payload": {"user": {"login": "ann", "id": 7}, "commits": [{"sha": "c1", "files": ["f", "g"]}, {"sha": "c2", "files": []}]}},
		{"Kind": "push", "payload": {"user": null, "commits": [{"sha": "c3", "files": ["h"]}]}},
		{"Kind": "star", "payload": null}]`,
		&schema.Field{Name: "Kind", Type: schema.String},
		&schema.Field{Name: "payload", Type: schema.Struct, Fields: []*schema.Field{
			{Name: "user", Type: schema.Struct, Fields: []*schema.Field{{Name: "login", Type: schema.String}, {Name: "id", Type: schema.Int64}}},
			{Name: "commits", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{
				{Name: "sha", Type: schema.String}, {Name: "files", Type: schema.String, Mode: schema.Repeated},
			}},
		}})
	c.add(t, "other-project:d.t", `[{"x": 42}]`, &schema.Field{Name: "x", Type: schema.Int64})
	c["p:d.v"] = &query.Table{View: "SELECT id, name FROM t WHERE id > 1"}
	return c
}

// TestStories runs the statements of testdata/*.txt: a statement, a line of dashes, and its answer or error, with a blank
// line between. With -rewrite the answers are written anew, to be read before they are believed.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	e, c := newEngine(t), stories(t)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(strings.TrimSpace(string(raw)), "\n\n")
		for i, block := range blocks {
			statement, want, ok := strings.Cut(block, "\n----")
			if !ok { // a comment
				continue
			}
			got, err := answer(e, c, statement)
			if err != nil {
				got = "error: " + err.Error()
				if fault, ok := errors.AsType[*query.Error](err); !ok && refusal.Of(err) == nil || ok && strings.Contains(fault.Message, "duckdb") {
					t.Errorf("%s: %s\n%v is no answer for a client", file, statement, err)
				}
			}
			if *rewrite {
				blocks[i] = statement + "\n----\n" + got
			} else if want = strings.TrimSpace(want); got != want {
				t.Errorf("%s: %s\n got %s\nwant %s", file, statement, got, want)
			}
		}
		if *rewrite {
			if err := os.WriteFile(file, []byte(strings.Join(slices.Clip(blocks), "\n\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

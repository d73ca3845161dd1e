package lineage

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fullEvent has every facet there is.
func fullEvent() *RunEvent {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	e := NewRunEvent(Fail, at, Run{"01940000-0000-7000-8000-000000000000", RunFacets{NewEngineFacet("v1"), NewErrorFacet(errors.New("no \"luck\""))}},
		Job{"ns", "j", JobFacets{NewJobTypeFacet(true)}})
	out := Output{Dataset: NewTable("p", "d", "t$20260101"), OutputFacets: OutputFacets{NewOutputStatistics(3, 90)}}
	out.Facets.Schema = NewSchemaFacet([]Field{{Name: "a", Type: "INT64", Description: "first"}, {Name: "s", Type: "STRUCT", Fields: []Field{{Name: "b", Type: "STRING"}}}})
	e.Inputs = []Input{{NewFile("/in"), InputFacets{NewInputStatistics(4, 80)}}}
	e.Outputs = []Output{out}
	return e
}

// TestEvent holds the JSON of events to the schemas of OpenLineage: names, required fields, kinds.
func TestEvent(t *testing.T) {
	got, err := json.MarshalIndent(fullEvent(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSpace(string(want)), string(got)); d != "" {
		t.Error(d)
	}
	empty, err := json.Marshal(NewRunEvent(Start, time.Time{}, Run{}, Job{}))
	if err != nil || !strings.Contains(string(empty), `"inputs":[],"outputs":[]`) {
		t.Errorf("%s, %v", empty, err)
	}
}

// The facet of our own has its schema in the repository.
func TestGCPFacetHasASchema(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/gcp-dataset-facet.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		ID   string `json:"$id"`
		Defs map[string]struct {
			AllOf []struct {
				Properties map[string]any
				Required   []string
			} `json:"allOf"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.ID != gcpURL {
		t.Errorf("its id is %s, and events name %s", schema.ID, gcpURL)
	}
	body, err := json.Marshal(NewTable("p", "d", "t").Facets.GCP)
	if err != nil {
		t.Fatal(err)
	}
	var facet map[string]any
	if err := json.Unmarshal(body, &facet); err != nil {
		t.Fatal(err)
	}
	own := schema.Defs["GCPDatasetFacet"].AllOf[1]
	for name := range facet {
		if _, ok := own.Properties[name]; !ok && !strings.HasPrefix(name, "_") {
			t.Errorf("the schema lacks %s", name)
		}
	}
	if len(own.Properties) != len(facet)-2 || len(own.Required) != len(own.Properties) {
		t.Errorf("the schema has %v, the facet %v", own, facet)
	}
}

func TestRunIDs(t *testing.T) {
	at := time.UnixMilli(0x0194_1234_5678)
	seen := map[string]bool{}
	for range 1000 {
		id := NewRunID(at)
		if !regexp.MustCompile(`^01941234-5678-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) || seen[id] {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
	}
}

// Whatever names are, an event is one line of JSON in UTF-8.
func FuzzEvent(f *testing.F) {
	f.Add("p\n", "d\"", "t`\x00\xff")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		e := NewRunEvent(Complete, time.Time{}, Run{ID: a}, Job{Namespace: b, Name: c})
		e.Outputs = []Output{{Dataset: NewTable(a, b, c)}}
		e.Inputs = []Input{{Dataset: NewFile(c)}}
		body, err := json.Marshal(e)
		if err != nil || !json.Valid(body) || strings.ContainsAny(string(body), "\n\r") {
			t.Errorf("%q, %v", body, err)
		}
	})
}

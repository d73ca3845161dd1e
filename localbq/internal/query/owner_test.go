package query_test

import (
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestAnonymousDatasets(t *testing.T) {
	ada := query.AnonymousDataset("ada@example.com", "p1", "US")
	for name, other := range map[string]string{
		"principal": query.AnonymousDataset("bob@example.com", "p1", "US"),
		"project":   query.AnonymousDataset("ada@example.com", "p2", "US"),
		"location":  query.AnonymousDataset("ada@example.com", "p1", "EU"),
		"boundary":  query.AnonymousDataset("1ada@example.com", "p", "US"),
	} {
		if other == ada {
			t.Errorf("another %s shares the dataset %s", name, ada)
		}
	}
	if again := query.AnonymousDataset("ada@example.com", "p1", "us"); again != ada {
		t.Errorf("location us: %s, US: %s", again, ada)
	}
}

func TestMayRead(t *testing.T) {
	ada := query.AnonymousDataset("ada@example.com", "p1", "EU")
	cases := []struct {
		principal, project, dataset string
		want                        bool
	}{
		{"ada@example.com", "p1", ada, true},
		{"bob@example.com", "p1", ada, false},
		{"ada@example.com", "p2", ada, false},
		{"bob@example.com", "p1", "sales", true},
		{"bob@example.com", "p1", "_hidden", true},
		{"bob@example.com", "p1", ada[:len(ada)-1] + "g", true},
	}
	for _, c := range cases {
		if got := query.MayRead(c.principal, c.project, c.dataset); got != c.want {
			t.Errorf("MayRead(%s, %s, %s) = %t", c.principal, c.project, c.dataset, got)
		}
	}
}

func TestRequiredFilter(t *testing.T) {
	day, ranged := &schema.TimePartition{Type: "DAY", Field: "day"}, &schema.RangePartition{Field: "id"}
	cases := []struct {
		name string
		d    schema.Definition
		want string
	}{
		{"not required", schema.Definition{Partition: day}, ""},
		{"column", schema.Definition{Partition: day, RequirePartitionFilter: true}, "day"},
		{"ranges", schema.Definition{Ranges: ranged, RequirePartitionFilter: true}, "id"},
		{"ingestion", schema.Definition{Partition: &schema.TimePartition{Type: "DAY"}, RequirePartitionFilter: true}, "_PARTITIONTIME"},
	}
	for _, c := range cases {
		if got := query.RequiredFilter(&c.d); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

package partition_test

import (
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/partition"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func layout(t *testing.T, d schema.Definition) partition.Layout {
	t.Helper()
	l, ok := partition.Of(&d)
	if !ok {
		t.Fatalf("%+v is not partitioned", d)
	}
	return l
}

func TestParse(t *testing.T) {
	by := func(unit, field string) schema.Definition {
		return schema.Definition{Partition: &schema.TimePartition{Type: unit, Field: field}}
	}
	numbers := schema.Definition{Ranges: &schema.RangePartition{Field: "n", Start: -10, End: 25, Interval: 10}}
	for _, c := range []struct {
		d       schema.Definition
		good    []string
		refused []string
	}{
		{by("DAY", ""), []string{"20260102", "19700101", "00010101", "__UNPARTITIONED__"}, []string{"__NULL__", "2026010203", "202601", "2026", "20260230", "", "2026-1-2", "00000101", "+2026010", "20260102 "}},
		{by("DAY", "d"), []string{"20260102", "__NULL__"}, []string{"x", "20261301"}},
		{by("HOUR", "d"), []string{"2026010223"}, []string{"2026010224", "20260102"}},
		{by("MONTH", "d"), []string{"202612"}, []string{"202613", "20261201"}},
		{by("YEAR", "d"), []string{"2026", "9999"}, []string{"0000", "20260"}},
		{numbers, []string{"-10", "0", "10", "20", "__NULL__", "__UNPARTITIONED__"}, []string{"-20", "5", "30", "010", "1e1", "25", "99999999999999999999", "\x00"}},
	} {
		l := layout(t, c.d)
		for _, id := range c.good {
			k, err := l.Parse(id)
			if err != nil {
				t.Errorf("%s: %q: %v", l, id, err)
			} else if got := l.ID(k); got != id {
				t.Errorf("%s: %q is spelt %q", l, id, got)
			}
		}
		for _, id := range c.refused {
			if k, err := l.Parse(id); err == nil {
				t.Errorf("%s: %q is partition %s", l, id, l.ID(k))
			}
		}
	}
	if _, ok := partition.Of(&schema.Definition{}); ok {
		t.Error("a table without partitions is partitioned")
	}
}

func TestAt(t *testing.T) {
	at := func(text string) int64 {
		v, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	for _, c := range []struct{ unit, at, id string }{
		{"DAY", "2026-01-02T23:59:59.999999Z", "20260102"}, {"DAY", "1969-12-31T00:00:00Z", "19691231"}, {"DAY", "1969-12-31T23:59:59.999999Z", "19691231"},
		{"DAY", "0001-01-01T00:00:00Z", "00010101"}, {"HOUR", "1969-12-31T22:59:59Z", "1969123122"}, {"HOUR", "2026-01-02T03:00:00Z", "2026010203"},
		{"MONTH", "2024-02-29T12:00:00Z", "202402"}, {"YEAR", "1969-06-01T00:00:00Z", "1969"},
	} {
		l := layout(t, schema.Definition{Partition: &schema.TimePartition{Type: c.unit}})
		if got := l.ID(l.At(at(c.at))); got != c.id {
			t.Errorf("%s of %s is %s, want %s", c.unit, c.at, got, c.id)
		}
		k, err := l.Parse(c.id)
		if err != nil || l.At(k.Ingested()) != k {
			t.Errorf("%s: rows ingested at %d are not in partition %s (%v)", c.unit, k.Ingested(), c.id, err)
		}
	}
}

func TestStreamable(t *testing.T) {
	now := time.Date(2026, 2, 1, 23, 0, 0, 0, time.UTC)
	l := layout(t, schema.Definition{Partition: &schema.TimePartition{Type: "DAY"}})
	for id, want := range map[string]bool{
		"20260201": true, "20260101": true, "20251231": false, "20260217": true, "20260218": false, "00010101": false, "99991231": false, "__UNPARTITIONED__": false,
	} {
		k, err := l.Parse(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Streamable(k, now); (err == nil) != want {
			t.Errorf("rows for $%s: %v", id, err)
		}
	}
}

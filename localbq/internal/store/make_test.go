package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestMakeTable(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	log := filepath.Join(o.Dir, segmentName(1))
	before, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	made, w, err := s.MakeTable(table, &schema.Definition{Schema: numberedSchema.Clone()}, Rows{Batches: list(numbered(0, 3), numbered(3, 2)), Job: &Job{Name: "p:US.j", Record: []byte(`{}`)}})
	if err != nil || w.Count != 5 || len(numbers(t, made, 0)) != 5 {
		t.Fatalf("%v %+v", err, w)
	}
	if _, _, err := s.MakeTable(table, &schema.Definition{Schema: numberedSchema.Clone()}, Rows{Batches: list(numbered(0, 1))}); !refusal.Is(err, refusal.Duplicate) {
		t.Errorf("a second time: %v", err)
	}
	abandon(t, s)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for cut := before.Size(); cut <= int64(len(whole)); cut += 7 {
		again := Options{Dir: t.TempDir(), Clock: o.Clock}
		if err := os.WriteFile(filepath.Join(again.Dir, segmentName(1)), whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		manifest, err := os.ReadFile(filepath.Join(o.Dir, manifestName))
		if err == nil {
			err = os.WriteFile(filepath.Join(again.Dir, manifestName), manifest, 0o644)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		s := open(t, again)
		found, err := s.Table(table)
		_, job := s.Jobs()["p:US.j"]
		switch {
		case err == nil && len(numbers(t, found, 0)) == 5 && job:
		case refusal.Is(err, refusal.NotFound) && !job && cut < int64(len(whole)):
		default:
			t.Errorf("cut at byte %d of %d: %v, job %t", cut, len(whole), err, job)
		}
		closeStore(t, s)
	}
	s = open(t, o)
	found, err := s.Table(table)
	if err != nil || len(numbers(t, found, 0)) != 5 {
		t.Errorf("the whole log: %v", err)
	}
	closeStore(t, s)
}

package store

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func wantRefusal(t *testing.T, err error, reason refusal.Reason, message string) {
	t.Helper()
	r := refusal.Of(err)
	if r == nil || r.Reason != reason || message != "" && r.Message != message {
		t.Errorf("got %v, want %s %q", err, reason, message)
	}
}

func TestDatasets(t *testing.T) {
	s := inMemory(t)
	d, err := s.Dataset(dataset)
	if err != nil {
		t.Fatal(err)
	}
	if d.Location != "US" || d.MaxTimeTravelHours != 168 {
		t.Errorf("defaults: location %q, time travel %d h, want US and 168", d.Location, d.MaxTimeTravelHours)
	}
	t.Run("a second of one name is a duplicate", func(t *testing.T) {
		_, err := s.CreateDataset(dataset, DatasetOptions{})
		wantRefusal(t, err, refusal.Duplicate, "Already Exists: Dataset p:d")
	})
	t.Run("bad ids and options are refused", func(t *testing.T) {
		_, err := s.CreateDataset(DatasetRef{"p", "a-b"}, DatasetOptions{})
		wantRefusal(t, err, refusal.Invalid, "")
		_, err = s.CreateDataset(DatasetRef{"p", "e"}, DatasetOptions{MaxTimeTravelHours: 50})
		wantRefusal(t, err, refusal.Invalid, "")
	})
	t.Run("an absent one is not found", func(t *testing.T) {
		_, err := s.Dataset(DatasetRef{"p", "other"})
		wantRefusal(t, err, refusal.NotFound, "Not found: Dataset p:other")
	})
	t.Run("an update changes the etag, and a stale one is refused", func(t *testing.T) {
		next, err := s.UpdateDataset(dataset, d.ETag, func(o *DatasetOptions) error { o.Description = "new"; return nil })
		if err != nil || next.Description != "new" || next.ETag == d.ETag || d.Description != "" {
			t.Fatalf("got %+v, %v", next, err)
		}
		_, err = s.UpdateDataset(dataset, d.ETag, func(*DatasetOptions) error { return nil })
		wantRefusal(t, err, refusal.ConditionNotMet, "")
		_, err = s.UpdateDataset(dataset, "", func(o *DatasetOptions) error { o.Location = "EU"; return nil })
		wantRefusal(t, err, refusal.Invalid, "")
	})
	t.Run("LBQ-152_with_tables_it_stays", func(t *testing.T) {
		makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
		wantRefusal(t, s.DeleteDataset(dataset, false), refusal.ResourceInUse, "Dataset p:d is still in use")
		if err := s.DeleteDataset(dataset, true); err != nil {
			t.Fatal(err)
		}
		_, err := s.Table(table)
		wantRefusal(t, err, refusal.NotFound, "Not found: Dataset p:d")
	})
}

func TestTables(t *testing.T) {
	s := inMemory(t)
	tab := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	t.Run("LBQ-146_duplicate", func(t *testing.T) {
		_, err := s.CreateTable(table, &schema.Definition{})
		wantRefusal(t, err, refusal.Duplicate, "Already Exists: Table p:d.t")
	})
	t.Run("in an absent dataset", func(t *testing.T) {
		_, err := s.CreateTable(TableRef{"p", "none", "t"}, &schema.Definition{})
		wantRefusal(t, err, refusal.NotFound, "Not found: Dataset p:none")
	})
	t.Run("in an absent dataset that is made", func(t *testing.T) {
		auto := open(t, Options{AutoCreateDataset: true})
		makeTable(t, auto, TableRef{"p", "none", "t"}, &schema.Definition{})
		if d, err := auto.Dataset(DatasetRef{"p", "none"}); err != nil || d.Location != "US" {
			t.Errorf("got %+v, %v", d, err)
		}
	})
	t.Run("bad ids", func(t *testing.T) {
		for _, id := range []string{"", "a$20240101", "a.b", "a\nb"} {
			_, err := s.CreateTable(dataset.Table(id), &schema.Definition{})
			wantRefusal(t, err, refusal.Invalid, "")
		}
	})
	t.Run("LBQ-148_etags", func(t *testing.T) {
		stale := tab.Info().ETag
		info, err := s.UpdateTable(table, stale, func(d *schema.Definition) error { d.Description = "x"; return nil })
		if err != nil || info.ETag == stale || info.Number != 1 || info.Created != tab.Infos()[0].Created {
			t.Fatalf("got %+v, %v", info, err)
		}
		_, err = s.UpdateTable(table, stale, func(*schema.Definition) error { return nil })
		wantRefusal(t, err, refusal.ConditionNotMet, "")
	})
	t.Run("writes of rows do not change the etag", func(t *testing.T) {
		before := tab.Info().ETag
		put(t, tab, numbered(0, 1))
		if tab.Info().ETag != before {
			t.Error("the etag changed")
		}
	})
	t.Run("LBQ-149_adding_a_required_column", func(t *testing.T) {
		_, err := s.UpdateTable(table, "", func(d *schema.Definition) error {
			d.Schema.Fields = append(d.Schema.Fields, &schema.Field{Name: "r", Type: schema.Int64, Mode: schema.Required})
			return nil
		})
		wantRefusal(t, err, refusal.Invalid, "Provided Schema does not match Table p:d.t. Cannot add required fields to an existing schema. (field: r)")
	})
	t.Run("partitioning cannot be added, clustering can", func(t *testing.T) {
		_, err := s.UpdateTable(table, "", func(d *schema.Definition) error { d.Partition = &schema.TimePartition{Type: "DAY"}; return nil })
		wantRefusal(t, err, refusal.Invalid, "")
		if _, err := s.UpdateTable(table, "", func(d *schema.Definition) error { d.Clustering = []string{"n"}; return nil }); err != nil {
			t.Error(err)
		}
	})
	t.Run("an error of the change is returned and changes nothing", func(t *testing.T) {
		why := errors.New("why")
		before := tab.Info()
		if _, err := s.UpdateTable(table, "", func(d *schema.Definition) error { d.Description = "y"; return why }); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if tab.Info() != before {
			t.Error("the table changed")
		}
	})
	t.Run("it lists by id", func(t *testing.T) {
		makeTable(t, s, dataset.Table("a"), &schema.Definition{})
		list, err := s.Tables(dataset)
		if err != nil || len(list) != 2 || list[0].Ref().Table != "a" || list[1] != tab {
			t.Errorf("got %v, %v", list, err)
		}
	})
}

func TestExpiration(t *testing.T) {
	manual := clock.NewManual(clock.Start)
	s := open(t, Options{Clock: manual})
	if _, err := s.CreateDataset(dataset, DatasetOptions{DefaultTableExpirationMs: time.Hour.Milliseconds()}); err != nil {
		t.Fatal(err)
	}
	old := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	manual.Advance(time.Hour - time.Millisecond)
	if _, err := s.Table(table); err != nil {
		t.Fatalf("gone before its time: %v", err)
	}
	manual.Advance(time.Millisecond)
	_, err := s.Table(table)
	wantRefusal(t, err, refusal.NotFound, "Not found: Table p:d.t")
	if list, _ := s.Tables(dataset); len(list) != 0 {
		t.Errorf("listed: %v", list)
	}
	again := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	if again == old || !old.Dropped() {
		t.Error("the expired table lives on in its successor")
	}
}

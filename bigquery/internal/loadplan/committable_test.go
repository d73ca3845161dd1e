package loadplan_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew: durable bytes only for a new format, whose old files stay")

func marshal(t testing.TB, c loadplan.Committable) []byte {
	t.Helper()
	data, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func unmarshal(t testing.TB, data []byte) loadplan.Committable {
	t.Helper()
	var c loadplan.Committable
	if err := c.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommittable(t *testing.T) {
	c := stagedIn(loadplan.Parquet, "ä.parquet")
	t.Run("FL-38 what is written is read", func(t *testing.T) {
		long := c
		long.URI = "gs://b/" + strings.Repeat("x", 70_000)
		extreme := c.WithCheckpoint(math.MaxInt64)
		extreme.Bytes, extreme.Rows = math.MaxInt64, math.MinInt64
		hostile := loadplan.Committable{Run: "\x00", Destination: table.Destination{Project: "`", Dataset: "'\"\n", Table: "../../t$1"}, URI: "gs://b/*"}
		told := c
		told.Schema = `[{"name":"ä","type":"STRING"}]`
		for _, c := range []loadplan.Committable{c, c.WithCheckpoint(0), c.WithCheckpoint(42), long, extreme, hostile, told, told.WithCheckpoint(3), {}} {
			equal(t, "what is read", unmarshal(t, marshal(t, c)), c)
		}
		if got := unmarshal(t, marshal(t, c.WithCheckpoint(0))).Checkpoint; !got.Set {
			t.Error("checkpoint 0 is read as none")
		}
		if got := unmarshal(t, marshal(t, c)).Checkpoint; got.Set {
			t.Errorf("no checkpoint is read as %v", got)
		}
	})
	t.Run("FL-38 a later version is named", func(t *testing.T) {
		data := marshal(t, c)
		data[0] = 9
		var got loadplan.Committable
		err := got.UnmarshalBinary(data)
		if !errors.Is(err, loadplan.ErrCommittable) || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "versions 1 and 2") {
			t.Errorf("error is %v", err)
		}
		equal(t, "what is left behind", got, loadplan.Committable{})
	})
	t.Run("FL-39 a stamp changes the checkpoint and nothing else", func(t *testing.T) {
		stamped := c.WithCheckpoint(7)
		equal(t, "checkpoint", stamped.Checkpoint, loadplan.Checkpoint{ID: 7, Set: true})
		stamped.Checkpoint = c.Checkpoint
		equal(t, "the rest", stamped, c)
		equal(t, "its checkpoint", c.Checkpoint.Set, false)
	})
	t.Run("cut off anywhere it is refused", func(t *testing.T) {
		data := marshal(t, c.WithCheckpoint(7))
		for n := range data {
			if err := new(loadplan.Committable).UnmarshalBinary(data[:n]); !errors.Is(err, loadplan.ErrCommittable) {
				t.Errorf("%d of %d bytes: error is %v", n, len(data), err)
			}
		}
		err := new(loadplan.Committable).UnmarshalBinary(append(data, 0))
		if !errors.Is(err, loadplan.ErrCommittable) || !strings.Contains(err.Error(), "version 1") {
			t.Errorf("a byte more: error is %v", err)
		}
		told := c
		told.Schema = "[]"
		data = marshal(t, told)
		for n := range data {
			if err := new(loadplan.Committable).UnmarshalBinary(data[:n]); !errors.Is(err, loadplan.ErrCommittable) {
				t.Errorf("%d of %d bytes with a schema: error is %v", n, len(data), err)
			}
		}
	})
	t.Run("what is no text has no durable form", func(t *testing.T) {
		for _, spoil := range []func(*loadplan.Committable){
			func(c *loadplan.Committable) { c.Run = "\xff" },
			func(c *loadplan.Committable) { c.Destination.Project = "\xff" },
			func(c *loadplan.Committable) { c.Destination.Dataset = "\xff" },
			func(c *loadplan.Committable) { c.Destination.Table = "\xff" },
			func(c *loadplan.Committable) { c.URI = "gs://b/\xff" },
			func(c *loadplan.Committable) { c.Profile = "\xff" },
			func(c *loadplan.Committable) { c.Schema = "\xff" },
			func(c *loadplan.Committable) { c.Format = 200 },
		} {
			c := c
			spoil(&c)
			if data, err := c.MarshalBinary(); !errors.Is(err, loadplan.ErrCommittable) {
				t.Errorf("%+v: %d bytes, error %v", c, len(data), err)
			}
		}
	})
	t.Run("hostile lengths", func(t *testing.T) {
		for _, tail := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x80\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
			if err := new(loadplan.Committable).UnmarshalBinary([]byte("\x01" + tail)); !errors.Is(err, loadplan.ErrCommittable) {
				t.Errorf("length %x: error is %v", tail, err)
			}
		}
	})
}

// TestGoldenCommittables: what a program wrote once is read for ever.
func TestGoldenCommittables(t *testing.T) {
	want := map[string]loadplan.Committable{
		"1_unstamped": stagedIn(loadplan.Parquet, "a.parquet"),
		"2_schema": {
			Run: runA, Destination: pdt, URI: "gs://b/x/a.csv.gz", Bytes: 1, Rows: 2, Format: loadplan.CSV, Profile: "5561fba2",
			Checkpoint: loadplan.Checkpoint{ID: 42, Set: true}, Schema: `[{"name":"ä","type":"STRING"}]`,
		},
		"1_stamped": {
			Run: runA, Destination: table.Destination{Project: "example.com:p", Dataset: "d", Table: "t$20260101"}, URI: "gs://b/ä/0-1-0a0b0c0d-3.jsonl.gz",
			Bytes: 1 << 40, Rows: 1<<31 + 1, Format: loadplan.JSONL, Profile: "c06007e4", Checkpoint: loadplan.Checkpoint{ID: 0, Set: true},
		},
	}
	for name, c := range want {
		path := filepath.Join("testdata", "committable_"+name+".hex")
		if *rewrite {
			if err := os.WriteFile(path, []byte(hex.EncodeToString(marshal(t, c))+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, path, unmarshal(t, data), c)
		if !bytes.Equal(marshal(t, c), data) {
			t.Errorf("%s is written otherwise now", path)
		}
	}
}

func TestAnyCommittable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		c := loadplan.Committable{
			Run: text.Draw(t, "run"), URI: text.Draw(t, "uri"), Profile: text.Draw(t, "profile"),
			Destination: table.Destination{Project: text.Draw(t, "project"), Dataset: text.Draw(t, "dataset"), Table: text.Draw(t, "table")},
			Bytes:       rapid.Int64().Draw(t, "bytes"), Rows: rapid.Int64().Draw(t, "rows"),
			Format: loadplan.Format(rapid.IntRange(0, int(loadplan.Custom)).Draw(t, "format")),
		}
		if rapid.Bool().Draw(t, "with a schema") {
			c.Schema = text.Draw(t, "schema")
		}
		if rapid.Bool().Draw(t, "stamped") {
			c = c.WithCheckpoint(rapid.Int64().Draw(t, "checkpoint"))
		}
		data, err := c.MarshalBinary()
		var got loadplan.Committable
		if err = errors.Join(err, got.UnmarshalBinary(data)); err != nil || got != c {
			t.Fatalf("%+v is read as %+v, error %v", c, got, err)
		}
	})
}

func FuzzUnmarshalBinary(f *testing.F) {
	for _, c := range []loadplan.Committable{{}, {Schema: "[]"}, staged("a"), staged("b").WithCheckpoint(0), stagedIn(loadplan.Custom, "c").WithCheckpoint(-1)} {
		data, err := c.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c loadplan.Committable
		if err := c.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, loadplan.ErrCommittable) {
				t.Errorf("error is %v", err)
			}
			return
		}
		if again, err := c.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%x is read, and written as %x (%v)", data, again, err)
		}
	})
}

func TestProfile(t *testing.T) {
	t.Run("FL-86 golden profiles", func(t *testing.T) {
		equal(t, "the profile of nothing", loadplan.Config{}.Profile(), "5561fba2")
		equal(t, "the profile of a temporary dataset", loadplan.Config{TempDataset: "scratch"}.Profile(), "c06007e4")
	})
	t.Run("each option is in it, and is not another", func(t *testing.T) {
		seen := map[string]loadplan.Config{}
		for _, c := range []loadplan.Config{
			{}, {JobProject: "x"}, {Location: "x"}, {TempProject: "x"}, {TempDataset: "x"}, {Disposition: loadplan.Truncate},
			{Disposition: loadplan.TruncateData}, {Disposition: loadplan.Empty}, {JobProject: "x1:y"}, {JobProject: "x", Location: "y"},
			{Bounds: loadplan.Limits{FilesPerLoad: 1}}, {Bounds: loadplan.Limits{BytesPerLoad: 1}}, {Bounds: loadplan.Limits{SourcesPerCopy: 1}},
			{JobProject: "-:"}, {JobProject: "\x00"}, {Location: "\x00"},
		} {
			p := c.Profile()
			if other, ok := seen[p]; ok {
				t.Errorf("%+v and %+v have the profile %s", c, other, p)
			}
			seen[p] = c
		}
		equal(t, "the profile when changes are allowed", loadplan.Config{AllowProfileChange: true}.Profile(), "5561fba2")
	})
}

func TestNamesOfValues(t *testing.T) {
	for d, want := range map[loadplan.Disposition]string{
		loadplan.Append: "WRITE_APPEND", loadplan.Truncate: "WRITE_TRUNCATE", loadplan.TruncateData: "WRITE_TRUNCATE_DATA", loadplan.Empty: "WRITE_EMPTY",
		9: "Disposition(9)",
	} {
		equal(t, "disposition", d.String(), want)
	}
	for f, want := range map[loadplan.Format]string{
		loadplan.Avro: "AVRO", loadplan.Parquet: "PARQUET", loadplan.JSONL: "JSONL", loadplan.CSV: "CSV", loadplan.Custom: "CUSTOM", 9: "Format(9)",
	} {
		equal(t, "format", f.String(), want)
	}
}

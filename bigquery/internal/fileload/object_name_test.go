package fileload

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestFolders: names of tables that mean something elsewhere.
func TestFolders(t *testing.T) {
	t.Parallel()
	for dst, want := range map[table.Destination]string{
		{Project: "p", Dataset: "d", Table: "t"}:                      "p.d.t",
		{Project: "example.com:p-1", Dataset: "d_1", Table: "t$2026"}: "example.com:p-1.d_1.t$2026",
		{Project: "p", Dataset: "d", Table: "Größe 1"}:                "p.d.Gr~c3~b6~c3~9fe~201",
		{Project: "p", Dataset: "d", Table: "a~20"}:                   "p.d.a~7e20",
		{Project: "p", Dataset: "d.x", Table: "t"}:                    "p.d~2ex.t",
		{Project: "p", Dataset: "d", Table: "*?#[]\x00\n/../%2F\"\\"}: "p.d.~2a~3f~23~5b~5d~00~0a~2f~2e~2e~2f~252F~22~5c",
		{Project: "p/*", Dataset: "*", Table: "日本"}:                   "p~2f~2a.~2a.~e6~97~a5~e6~9c~ac",
	} {
		if got := folder(dst); got != want {
			t.Errorf("%+v is %s, want %s", dst, got, want)
		}
	}
	long := table.Destination{Project: "p", Dataset: strings.Repeat("d", 1024), Table: strings.Repeat("é", 512)}
	other := long
	other.Table = other.Table[:1022] + "e"
	if a, b := folder(long), folder(other); len(a) != folderBytes || len(b) != folderBytes || a == b || !strings.HasPrefix(a, "p.ddd") || !strings.Contains(a, "~~") {
		t.Errorf("long names are\n%s\n%s", a, b)
	}
}

// TestNoTwoTablesShareAFolder, and none leads out of its own, or stands for more than one.
func TestNoTwoTablesShareAFolder(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(rapid.StringMatching(`[a-c.~/*$:é 0-9]{0,6}`), rapid.String(), rapid.StringMatching(`[~.]{0,3}[0-9a-f]{100,200}`))
	destination := rapid.Custom(func(r *rapid.T) table.Destination {
		return table.Destination{Project: part.Draw(r, "project"), Dataset: part.Draw(r, "dataset"), Table: part.Draw(r, "table")}
	})
	rapid.Check(t, func(r *rapid.T) {
		a, b := destination.Draw(r, "a"), destination.Draw(r, "b")
		x, y := folder(a), folder(b)
		// The project may have points, so that a point at its end could be the one behind it.
		if x == y && a != b && a.Validate() == nil && b.Validate() == nil {
			r.Fatalf("both are %s", x)
		}
		if strings.ContainsAny(x, "*?#[]/\\%\"<>| ") || len(x) > folderBytes || !utf8.ValidString(x) || strings.ContainsFunc(x, func(c rune) bool { return c < 0x21 || c > 0x7e }) {
			r.Fatalf("%+v is %q", a, x)
		}
	})
}

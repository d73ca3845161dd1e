package engine

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestJobFolder(t *testing.T) {
	for job, want := range map[string]string{ // up to the hash, where there is one
		"github-events":         "github-events",
		"a_1":                   "a_1",
		strings.Repeat("a", 64): strings.Repeat("a", 64),
		"":                      "job~",
		"GitHub events":         "job-github-events~",
		"../etc":                "job----etc~",
		"-x":                    "job--x~",
		strings.Repeat("a", 65): "job-" + strings.Repeat("a", 36) + "~",
	} {
		got := jobFolder(job)
		before, hash, hashed := strings.Cut(got, "~")
		if hashed {
			got = before + "~"
		}
		if got != want || hashed && len(hash) != 32 {
			t.Errorf("jobFolder(%.20q) = %q, want %q", job, jobFolder(job), want)
		}
	}
}

// TestJobFolderProperty: a folder is a plain, short name, and two jobs never share one.
func TestJobFolderProperty(t *testing.T) {
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9_~./\\-]{0,70}`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		folder := jobFolder(a)
		if len(folder) == 0 || len(folder) > 80 {
			t.Fatalf("%q has %d bytes", folder, len(folder))
		}
		for i := range len(folder) {
			if !plainByte(folder[i]) && folder[i] != '~' {
				t.Fatalf("%q has a %q", folder, folder[i])
			}
		}
		if a != b && strings.EqualFold(folder, jobFolder(b)) {
			t.Fatalf("%q and %q share %q", a, b, folder)
		}
		if again := jobFolder(folder); again == folder && a != folder {
			t.Fatalf("%q and %q share %q", a, folder, folder)
		}
	})
}

func TestCheckpointIDs(t *testing.T) {
	got := checkpointIDs([]string{
		objectName(10), objectName(9), objectName(1<<63 - 1),
		"9.checkpoint", "0000000000000000000.checkpoint", "-000000000000000001.checkpoint", "9223372036854775808.checkpoint",
		"0000000000000000003.checkpoint.attrs", ".0000000000000000004.checkpoint.ABC", "0000000000000000005", "readme.txt", "",
	})
	if want := []int64{9, 10, 1<<63 - 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

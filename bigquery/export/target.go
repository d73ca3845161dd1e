package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// target is where files go.
type target struct {
	typed       string
	bucket      string // of Cloud Storage; "" is the file system
	before      string // what names have before the number, folders too
	after       string // what they have behind it
	many        bool   // files are numbered
	format      Format // as the name tells; "" when it does not
	compression compression
}

const cloudScheme = "gs://"

// Many reports whether a target is many files: a folder, or a name with a *.
func Many(name string) bool {
	t, err := parseTarget(name, "")
	return err == nil && t.many
}

// parseTarget reads what a user named. The format is that of files in a folder, whose names do not tell it.
func parseTarget(name string, format Format) (target, error) {
	t := target{typed: name}
	rest, cloud := strings.CutPrefix(name, cloudScheme)
	slash := func(c rune) bool { return c == '/' || !cloud && os.IsPathSeparator(uint8(min(c, 127))) && c < 128 }
	if cloud {
		var object string
		var found bool
		t.bucket, object, found = strings.Cut(rest, "/")
		if t.bucket == "" || !found || strings.ContainsAny(t.bucket, " \t\r\n\x00*") {
			return t, fmt.Errorf("%q: expected gs://bucket/name", name)
		}
		rest = object
	}
	switch {
	case strings.ContainsRune(name, 0):
		return t, fmt.Errorf("%q: a name has no NUL in it", name)
	case cloud && strings.ContainsAny(name, "\r\n"):
		return t, fmt.Errorf("%q: names of objects have no line ends (Cloud Storage documentation, \"Object name requirements\")", name)
	case !cloud && rest == "":
		return t, errors.New("name a file or a folder to write to")
	case rest == "" || slash(rune(rest[len(rest)-1])) || !cloud && isFolder(rest):
		if !cloud {
			rest = filepath.Clean(rest) + string(filepath.Separator)
		}
		rest += "part-*." + string(cmpFormat(format))
	}
	last := strings.LastIndexFunc(rest, slash) + 1
	if strings.Contains(rest[:last], "*") {
		return t, fmt.Errorf("%q: a * stands for the number of a file, and goes into its name, not into a folder's", name)
	}
	if strings.Count(rest, "*") > 1 {
		return t, fmt.Errorf("%q: one * stands for the number of a file, and there are %d", name, strings.Count(rest, "*"))
	}
	t.before, t.after, t.many = strings.Cut(rest, "*")
	if !t.many && !cloud {
		// A link stays, and leads to the new file.
		if real, err := filepath.EvalSymlinks(t.before); err == nil {
			t.before = real
		}
	}
	t.format, _ = FormatOf(rest[last:])
	t.compression, _ = compressionOf(rest[last:])
	return t, nil
}

func cmpFormat(f Format) Format {
	if f == "" {
		return NDJSON
	}
	return f
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// name is that of file number n.
func (t target) name(n int) string {
	if !t.many {
		return t.before
	}
	return fmt.Sprintf("%s%06d%s", t.before, n, t.after)
}

// notes is the name of the notes that a read goes on by.
func (t target) notes() string { return t.before + t.after + ".resume" }

// says is a name as the user knows it.
func (t target) says(name string) string {
	if t.bucket != "" {
		return cloudScheme + t.bucket + "/" + name
	}
	return name
}

// numbered reports whether a name is that of a file of the target, and its folder's is left out.
func (t target) numbered(base string) bool {
	number, ok := strings.CutPrefix(base, t.before[t.folder():])
	if !ok {
		return false
	}
	number, ok = strings.CutSuffix(number, t.after)
	return ok && len(number) >= 6 && strings.Trim(number, "0123456789") == ""
}

// folder is where the name of the folder ends.
func (t target) folder() int {
	return strings.LastIndexFunc(t.before, func(c rune) bool { return c == '/' || t.bucket == "" && c < 128 && os.IsPathSeparator(uint8(c)) }) + 1
}

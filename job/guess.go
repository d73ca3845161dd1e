package job

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// extensions are the names of formats that names of files end with.
var extensions = map[string]string{
	".csv": "csv", ".avro": "avro", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson",
}

// packings are what the names of packed files end with, behind that.
var packings = []string{".gz", ".zst"}

// formatOf is the format that the name of a file, or a pattern, tells; "" where it tells none.
func formatOf(name string) string {
	name = strings.ToLower(path.Base(filepath.ToSlash(name)))
	if ext := path.Ext(name); slices.Contains(packings, ext) {
		name = strings.TrimSuffix(name, ext)
	}
	return extensions[path.Ext(name)]
}

// guessFormat fills in the format that is not named, where the names of the files tell one and the same. It faults names that
// tell several.
func (p *Parsed) guessFormat(d *decoder) {
	const key = "source.files."
	f := p.Source.Files
	if _, named := d.places[key+"format"]; f == nil || named {
		return
	}
	told := map[string]string{} // format to the first name that tells it
	var formats []string
	for _, name := range f.Paths {
		if format := formatOf(name); format != "" && told[format] == "" {
			told[format] = name
			formats = append(formats, format)
		}
	}
	switch len(formats) {
	case 0:
	case 1:
		f.Format = formats[0]
		p.Guessed = f.Format != "ndjson"
	default:
		checker{d}.fault(key+"paths", "has files of several formats by their names, such as %q and %q, and a job reads one: say which with format, or make two jobs of it",
			told[formats[0]], told[formats[1]])
	}
}

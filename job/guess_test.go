package job

import (
	"errors"
	"strings"
	"testing"
)

func TestFormatIsWhatNamesTell(t *testing.T) {
	for paths, want := range map[string]string{
		"a.csv": "csv", "A.CSV.GZ": "csv", "d/*.avro": "avro", "x.parquet": "parquet", "a.ndjson.zst, b.jsonl": "", "a.txt": "", "a.txt, b.csv": "csv",
		"-": "", "csv": "", ".csv": "csv", "a.csv.gz.gz": "", "a.csv/b": "", "'a.csv\\n'": "", "a.gz": "", "..": "", "a.csv.": "",
	} {
		p, err := Parse("job.yaml", []byte("job: j\nsource: { files: { paths: ["+paths+"] } }\nsink: { bigquery: { table: p.d.t, schema: { infer: {} } } }\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", paths, err)
			continue
		}
		if got := p.Source.Files.Format; got != want && (want != "" || got != "ndjson") || p.Guessed != (want != "") {
			t.Errorf("%s: format %q, guessed %v, want %q", paths, got, p.Guessed, want)
		}
	}
	_, err := Parse("job.yaml", []byte("job: j\nsource: { files: { paths: [a.csv, b.avro.gz] } }\nsink: { bigquery: { table: p.d.t, schema: { infer: {} } } }\n"), nil)
	if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Faults) != 1 || invalid.Faults[0].Line != 2 || !strings.Contains(err.Error(), `"a.csv" and "b.avro.gz"`) {
		t.Errorf("error %v, want one fault that names both", err)
	}
	p, err := Parse("job.yaml", []byte("job: j\nsource: { files: { paths: [a.csv, b.avro], format: ndjson } }\nsink: { bigquery: { table: p.d.t, schema: { infer: {} } } }\n"), nil)
	if err != nil || p.Guessed || p.Source.Files.Format != "ndjson" {
		t.Errorf("what is named is not guessed: %v", err)
	}
}

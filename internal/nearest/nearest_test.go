package nearest_test

import (
	"testing"

	"github.com/millrace-dev/millrace/internal/nearest"
)

func TestTo(t *testing.T) {
	known := []string{"method", "table", "schema", "create", "deadLetter"}
	for word, want := range map[string]string{"methud": "method", "tabel": "table", "Schema": "schema", "deadletters": "deadLetter", "x": "", "partition": "", "": ""} {
		if got := nearest.To(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

package export_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/export"
)

// TestParts: parts come one after the other, however many there are, and when a call takes some of a part only.
func TestParts(t *testing.T) {
	t.Parallel()
	var parts [][]byte
	for i := range 5000 {
		parts = append(parts, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, i%9*70))
	}
	want := bytes.Join(parts, nil)
	r, w, err := os.Pipe() // holds less than there is
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ended := make(chan error, 1)
	go func() {
		n, err := export.Writev(w, parts)
		if n != int64(len(want)) {
			t.Errorf("%d bytes of %d", n, len(want))
		}
		ended <- errors.Join(err, w.Close())
	}()
	got, err := io.ReadAll(r)
	if err := errors.Join(err, <-ended); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or other bytes", err)
	}
}

// TestPartsOfAFullDisk: the error names the file.
func TestPartsOfAFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	n, err := export.Writev(full, [][]byte{[]byte("a"), []byte("b")})
	if n != 0 || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("%d, %v", n, err)
	}
}

package lines_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/load/lines"
)

func TestRead(t *testing.T) {
	const most = 100
	fits, long := strings.Repeat("x", most-1)+"\n", strings.Repeat("x", 5*most)
	in := bufio.NewReaderSize(strings.NewReader("a\n"+fits+"x"+fits+"\n"+long+"\nb\n"+long), 16)
	for _, want := range []struct {
		text string
		n    int
		err  error
	}{{"a\n", 2, nil}, {fits, most, nil}, {"", most + 1, lines.ErrTooLong}, {"\n", 1, nil}, {"", 5*most + 1, lines.ErrTooLong}, {"b\n", 2, nil}, {"", 5 * most, lines.ErrTooLong}, {"", 0, io.EOF}} {
		got, n, err := lines.Read(in, most)
		if string(got) != want.text || n != int64(want.n) || !errors.Is(err, want.err) {
			t.Errorf("got %q, %d, %v, want %+v", got, n, err, want)
		}
	}
}

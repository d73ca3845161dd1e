// Package lines reads lines of text files that may be anything.
package lines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// MostBytes is the longest row (BigQuery documentation, "Quotas and limits", "Load jobs", maximum row size).
const MostBytes = 100 << 20

// ErrTooLong is a row of more than MostBytes.
var ErrTooLong = fmt.Errorf("Row size is larger than: %d.", MostBytes)

// Read is the next line with its end, if it has one, and how many bytes were read for it. It holds until the next read. A line
// of more than most bytes is passed over with ErrTooLong. io.EOF comes with what there is behind the last end.
func Read(in *bufio.Reader, most int) (line []byte, n int64, err error) {
	line, err = in.ReadSlice('\n')
	if n = int64(len(line)); errors.Is(err, bufio.ErrBufferFull) {
		line = append([]byte(nil), line...)
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = in.ReadSlice('\n')
		if n += int64(len(part)); n > int64(most) {
			line = nil
			continue
		}
		line = append(line, part...)
	}
	if n > int64(most) && (err == nil || errors.Is(err, io.EOF)) {
		return nil, n, ErrTooLong
	}
	return line, n, err
}

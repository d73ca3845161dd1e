package job

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/files"
)

// peek takes the sample of an input that can be read only once: it reads the first lines into memory, scans those, and
// gives the source back the input as if nothing had been read.
func (s *scan) peek(source *files.Source, in io.Reader) error {
	if in == nil {
		return errors.New("standard input is not connected")
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	var head bytes.Buffer
	for lines := 0; lines < s.sample; {
		piece, err := buffered.ReadSlice('\n')
		head.Write(piece)
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the middle of a long line
		case errors.Is(err, io.EOF):
			lines = s.sample
		case err != nil:
			return fmt.Errorf("read standard input: %w", err)
		default:
			lines++
		}
		if s.limit > 0 && int64(head.Len()) >= s.limit {
			break
		}
	}
	sample, err := files.NewSource([]string{files.Stdin}, files.Options{})
	if err != nil {
		return err
	}
	s.source = sample.WithStdin(bytes.NewReader(head.Bytes()))
	source.WithStdin(io.MultiReader(bytes.NewReader(head.Bytes()), buffered))
	return nil
}

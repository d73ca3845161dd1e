package job

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/files"
)

// maxPeekBytes bounds what is held of an input that can be read only once, whatever its records look like.
const maxPeekBytes = 64 << 20

// peek takes the sample of an input that can be read only once: it reads the first lines into memory, scans those, and
// gives the source back the input as if nothing had been read.
func (s *scan) peek(ctx context.Context, source *files.Source, in io.Reader) error {
	if in == nil {
		return errors.New("standard input is not connected")
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	type read struct {
		head []byte
		err  error
	}
	done := make(chan read, 1)
	// Owned by this call; where ctx ends it, it ends after the read that is under way: no call can end a blocked read of
	// standard input.
	go func() {
		head, err := s.head(buffered)
		done <- read{head, err}
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case r := <-done:
		if r.err != nil {
			return fmt.Errorf("read standard input: %w", r.err)
		}
		sample, err := files.NewSource([]string{files.Stdin}, s.options)
		if err != nil {
			return err
		}
		s.source = sample.WithStdin(bytes.NewReader(r.head))
		source.WithStdin(io.MultiReader(bytes.NewReader(r.head), buffered))
		return nil
	}
}

// head reads as many records as the sample has, or as many bytes as may be looked at.
func (s *scan) head(in *bufio.Reader) ([]byte, error) {
	limit := int64(maxPeekBytes)
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	var head bytes.Buffer
	counter, err := s.options.Counter()
	if err != nil {
		return nil, err
	}
	for records := 0; records < s.sample && int64(head.Len()) < limit; {
		piece, err := in.ReadSlice('\n')
		head.Write(piece)
		records = counter.Add(piece)
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the middle of a long line
		case errors.Is(err, io.EOF):
			return head.Bytes(), nil
		case err != nil:
			return nil, err
		}
	}
	return head.Bytes(), nil
}

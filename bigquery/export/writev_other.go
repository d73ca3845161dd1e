//go:build !linux

package export

import (
	"io"
	"os"
)

func writev(f *os.File, parts [][]byte) (int64, error) {
	return writeParts(struct{ io.Writer }{f}, parts)
}

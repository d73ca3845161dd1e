package export

import "io"

// partsWriter writes parts one after the other in fewer calls than there are parts.
type partsWriter interface {
	writeParts(parts [][]byte) (int64, error)
}

// writeParts writes parts one after the other, and answers how many bytes of them were written.
func writeParts(w io.Writer, parts [][]byte) (written int64, err error) {
	if p, ok := w.(partsWriter); ok && len(parts) > 1 {
		return p.writeParts(parts)
	}
	for _, p := range parts {
		n, err := w.Write(p)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

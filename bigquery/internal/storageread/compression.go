package storageread

import (
	"fmt"

	"github.com/pierrec/lz4/v4"
)

// maxExpansion is how many bytes one byte of a raw LZ4 block can stand for (LZ4 block format, "Match length": each byte more
// adds 255).
const maxExpansion = 255

// expand makes the rows of a response out of what was sent: one raw LZ4 block of rows that had size bytes, or the rows
// themselves where size is not positive, as it is when compression gained nothing or was not asked for (storage.proto,
// ReadRowsResponse.uncompressed_byte_size).
func expand(data []byte, size int64) ([]byte, error) {
	if size <= 0 {
		return data, nil
	}
	if size/maxExpansion > int64(len(data)) {
		return nil, fmt.Errorf("a response of %d compressed bytes says that it holds %d: expected at most %d", len(data), size, maxExpansion*int64(len(data)))
	}
	out := make([]byte, size)
	n, err := lz4.UncompressBlock(data, out)
	if err != nil {
		return nil, fmt.Errorf("a response cannot be decompressed: %w", err)
	}
	if int64(n) != size {
		return nil, fmt.Errorf("a response says that it holds %d bytes, and holds %d", size, n)
	}
	return out, nil
}

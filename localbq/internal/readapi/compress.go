package readapi

import (
	"github.com/pierrec/lz4/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// squeeze compresses a response's rows as one raw LZ4 block if asked to, and answers what uncompressed_byte_size then is:
// the size before, or -1 where compression gains nothing (storage.proto, ReadRowsResponse.uncompressed_byte_size).
func squeeze(rows []byte, asked bool) ([]byte, *int64) {
	if !asked {
		return rows, nil
	}
	out := make([]byte, lz4.CompressBlockBound(len(rows)))
	var c lz4.Compressor
	n, err := c.CompressBlock(rows, out)
	if err != nil || n == 0 || n >= len(rows) {
		return rows, new(int64(-1))
	}
	return out[:n], new(int64(len(rows)))
}

func tooLarge(bytes int) error {
	return status.Errorf(codes.ResourceExhausted, "a row takes %d bytes: a response holds at most %d", bytes, maxResponseBytes)
}

package objects

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// EncodeCRC32C spells a checksum as the API does: base64 of four bytes, most significant first.
func EncodeCRC32C(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// DecodeCRC32C reads a checksum.
func DecodeCRC32C(text string) (uint32, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 4 {
		return 0, fmt.Errorf("crc32c %q: expected base64 of four bytes", text)
	}
	return binary.BigEndian.Uint32(b), nil
}

// EncodeMD5 spells a hash as the API does: base64.
func EncodeMD5(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

// DecodeMD5 reads a hash.
func DecodeMD5(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 16 {
		return nil, fmt.Errorf("md5 %q: expected base64 of sixteen bytes", text)
	}
	return b, nil
}

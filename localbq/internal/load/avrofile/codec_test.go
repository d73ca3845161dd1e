package avrofile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

func packed(t *testing.T, text string, c xz.WriterConfig) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := c.NewWriter(&out)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestXZ(t *testing.T) {
	text := strings.Repeat("rows of a file ", 5000)
	for name, c := range map[string]xz.WriterConfig{
		"crc32": {CheckSum: xz.CRC32}, "crc64": {CheckSum: xz.CRC64}, "sha256": {CheckSum: xz.SHA256}, "unchecked": {NoCheckSum: true},
		"many blocks": {BlockSize: 1000}, "a small window": {DictCap: 4096},
	} {
		got, err := xzCodec.Decompress(packed(t, text, c))
		if err != nil || string(got) != text {
			t.Errorf("%s: got %d bytes and %v, want %d", name, len(got), err, len(text))
		}
	}
	whole := packed(t, text, xz.WriterConfig{})
	for i := range whole {
		if i > 200 && i < len(whole)-60 { // enough of the middle
			continue
		}
		broken := bytes.Clone(whole)
		broken[i] ^= 0x10
		if got, err := xzCodec.Decompress(broken); err == nil && string(got) != text {
			t.Errorf("byte %d changed: got %d other bytes and no error", i, len(got))
		}
		if got, err := xzCodec.Decompress(whole[:i]); err == nil && string(got) != text {
			t.Errorf("cut off at %d: got %d bytes and no error", i, len(got))
		}
	}
	if _, err := xzCodec.DecompressBounded(whole, 1000); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("more than was allowed: %v", err)
	}
	// A window of 4 GiB, in a header whose checksum agrees.
	huge := bytes.Clone(whole)
	end := 12 + (int(huge[12])+1)*4 - 4
	at := bytes.IndexByte(huge[13:end], lzma2) + 13
	huge[at+2] = 40
	binary.LittleEndian.PutUint32(huge[end:], crc32.ChecksumIEEE(huge[12:end]))
	if got, err := xzCodec.DecompressBounded(huge, 1<<20); err != nil || string(got) != text {
		t.Errorf("a window of 4 GiB: got %d bytes and %v", len(got), err)
	}
}

package ocf_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro"
	peer "github.com/twmb/avro/ocf"
	"github.com/ulikunitz/xz"

	"github.com/millrace-dev/millrace/internal/avro/ocf"
)

var schema = avro.MustParse(`{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}`)

type packer struct {
	name string
	pack func([]byte) ([]byte, error)
}

func (p packer) Name() string                        { return p.name }
func (p packer) Compress(src []byte) ([]byte, error) { return p.pack(src) }
func (packer) Close() error                          { return nil }
func (packer) Decompress(src []byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func packXZ(src []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(src)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// bzip2 of a block that holds one record of "abc": there is no packer at hand.
func packBzip2([]byte) ([]byte, error) {
	return hex.DecodeString("425a6839314159265359d4037fd40000004100010038002000219a68334d133c5dc914e14243500dff50")
}

func codecs(t testing.TB) map[string]peer.Codec {
	t.Helper()
	zstd, err := peer.ZstdCodec(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]peer.Codec{"null": nil, "deflate": peer.DeflateCodec(-1), "snappy": peer.SnappyCodec(), "zstandard": zstd,
		"xz": packer{"xz", packXZ}, "bzip2": packer{"bzip2", packBzip2}}
}

// file writes texts in blocks of so many records.
func file(t testing.TB, codec peer.Codec, texts []string, perBlock int) []byte {
	t.Helper()
	var out bytes.Buffer
	opts := []peer.WriterOpt{}
	if codec != nil {
		opts = append(opts, peer.WithCodec(codec))
	}
	w, err := peer.NewWriter(&out, schema, opts...)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range texts {
		if err := w.Encode(map[string]any{"s": s}); err != nil {
			t.Fatal(err)
		}
		if (i+1)%perBlock == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read is the texts of all blocks.
func read(data []byte, limit int) (texts []string, err error) {
	r, err := ocf.NewReader(bytes.NewReader(data), limit)
	if err != nil {
		return nil, err
	}
	for {
		b, err := r.Next()
		if err == io.EOF {
			return texts, nil
		}
		if err != nil {
			return texts, err
		}
		datums, err := r.Data(b)
		if err != nil {
			return texts, err
		}
		i := 0
		for range b.Count {
			next := r.Schema.Skip(datums, i)
			if next < 0 {
				return texts, errors.New("a record is damaged")
			}
			texts = append(texts, string(datums[i+1:next]))
			i = next
		}
	}
}

func TestCodecs(t *testing.T) {
	for name, codec := range codecs(t) {
		t.Run(name, func(t *testing.T) {
			texts := []string{"abc"}
			if name != "bzip2" {
				for i := range 50 {
					texts = append(texts, fmt.Sprint("text ", i))
				}
			}
			data := file(t, codec, texts, 7)
			got, err := read(data, 1<<20)
			if err != nil || strings.Join(got, ",") != strings.Join(texts, ",") {
				t.Errorf("%q, %v, want %q", got, err, texts)
			}
			// Damage is found, or does no harm, and never brings the reader down.
			for i := range data {
				bad := bytes.Clone(data)
				bad[i] ^= 0x55
				if _, err := read(bad, 1<<20); err != nil && !errors.Is(err, ocf.ErrDamaged) && !known(err) {
					t.Errorf("byte %d: %v, want ErrDamaged", i, err)
				}
				if _, err := read(data[:i], 1<<20); err != nil && !errors.Is(err, ocf.ErrDamaged) && !known(err) {
					t.Errorf("cut at %d: %v, want ErrDamaged", i, err)
				}
			}
		})
	}
}

// known are faults that a changed byte can make of a file that is whole otherwise.
func known(err error) bool {
	for _, text := range []string{"is packed with", "a record is damaged", "raise maxBlockBytes", "take no bytes"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// TestBombs: a block that unpacks to more than the limit is refused by its offset, whatever it is packed with.
func TestBombs(t *testing.T) {
	for name, codec := range codecs(t) {
		if name == "bzip2" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data := file(t, codec, []string{"abc", strings.Repeat("a", 4<<20)}, 1)
			if name != "null" && len(data) > 1<<18 && name != "snappy" {
				t.Fatalf("%d bytes are no bomb", len(data))
			}
			got, err := read(data, 1<<20)
			if len(got) != 1 || err == nil || !strings.Contains(err.Error(), "raise maxBlockBytes") || !strings.Contains(err.Error(), "block at byte") {
				t.Errorf("%d records, %v, want one and a refusal", len(got), err)
			}
			if got, err := read(data, 8<<20); len(got) != 2 || err != nil {
				t.Errorf("%d records, %v under a higher limit", len(got), err)
			}
		})
	}
}

func TestSeek(t *testing.T) {
	texts := []string{}
	for i := range 20_000 {
		texts = append(texts, fmt.Sprint("text ", i))
	}
	data := file(t, nil, texts, 100)
	r, err := ocf.NewReader(bytes.NewReader(data), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{int(r.Size), len(data) / 3, len(data) - 20, len(data)} {
		s, err := ocf.NewReaderAt(r.Header, bytes.NewReader(data[at:]), int64(at), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Seek()
		i := bytes.Index(data[at:], r.Sync[:])
		if i < 0 {
			if err != io.EOF {
				t.Errorf("from %d: %v, want EOF", at, err)
			}
			continue
		}
		if want := int64(at + i + 16); err != nil || s.At() != want {
			t.Errorf("from %d: %d, %v, want %d", at, s.At(), err, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, codec := range codecs(f) {
		f.Add(file(f, codec, []string{"abc"}, 1))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { read(data, 1<<16) })
}

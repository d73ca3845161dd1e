package rest

import (
	"bytes"
	"encoding/hex"
	"io"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"github.com/ulikunitz/xz"
)

// packer is a codec that only writes.
type packer struct {
	name string
	pack func([]byte) ([]byte, error)
}

func (p packer) Name() string                        { return p.name }
func (p packer) Compress(src []byte) ([]byte, error) { return p.pack(src) }
func (p packer) Decompress([]byte) ([]byte, error)   { return nil, io.ErrUnexpectedEOF }
func (p packer) Close() error                        { return nil }

func TestLoadAvroCodecs(t *testing.T) {
	x := setupTransfers(t)
	zstd, err := ocf.ZstdCodec(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, codec := range map[string]ocf.Codec{
		"deflate": ocf.DeflateCodec(-1), "snappy": ocf.SnappyCodec(), "zstandard": zstd,
		// The block that holds one record of "abc", as Python's bz2 packs it.
		"bzip2": packer{"bzip2", func([]byte) ([]byte, error) {
			return hex.DecodeString("425a6839314159265359d4037fd40000004100010038002000219a68334d133c5dc914e14243500dff50")
		}},
		"xz": packer{"xz", func(src []byte) ([]byte, error) {
			var out bytes.Buffer
			w, err := xz.NewWriter(&out)
			if err == nil {
				_, err = w.Write(src)
			}
			if err == nil {
				err = w.Close()
			}
			return out.Bytes(), err
		}},
	} {
		t.Run("LBQ-166 the container codec "+name, func(t *testing.T) {
			var file bytes.Buffer
			w, err := ocf.NewWriter(&file, avro.MustParse(avroRecord(`{"name":"v","type":"string"}`)), ocf.WithCodec(codec))
			if err == nil {
				err = w.Encode(map[string]any{"v": "abc"})
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			x.put(name, file.Bytes())
			x.done("codec-"+name, loading("codec_"+name, "AVRO", "gs://b-1/"+name))
			x.wantRows("codec_"+name, `{"v":"abc"}`)
		})
	}
}

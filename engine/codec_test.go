package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/stream"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew: only for a new format, whose old files stay")

// full is a checkpoint with everything in it.
func full() *Checkpoint {
	return &Checkpoint{
		Job: "github events", ID: 42, Run: RunID{0: 1, 15: 255}, Taken: time.Unix(1767225600, 123456789).UTC(), Lanes: 3,
		Savepoint: true, Stopped: true,
		Tally:      stream.Tally{Read: 100, Written: 90, DeadLettered: 4, Skipped: 5, Failed: 1, Bytes: 1 << 40},
		InputBytes: 12345,
		Enumerator: []byte{},
		Splits: []HeldSplit{
			{Lane: 0, Split: stream.Split{ID: "events/1.ndjson", Data: []byte("files/1"), Position: 10}},
			{Lane: 2, Split: stream.Split{ID: "leer", Data: nil, Position: stream.MaxPosition}},
		},
		States: []stream.State{
			{Destination: "p.d.t", Shard: "", Data: []byte("state/1")},
			{Destination: "p.d.ü", Shard: "7", Data: []byte{}},
		},
		Committables: []HeldCommittable{{Lane: 1, Checkpoint: 41, Committable: stream.Committable{Key: "streams/1", Data: []byte{0, 1, 255}}}},
	}
}

// empty is one with nothing in it.
func empty() *Checkpoint {
	return &Checkpoint{Job: "j", ID: 1, Taken: time.Unix(0, 0).UTC(), Finished: true}
}

// TestGolden reads what all versions wrote. These files never change.
func TestGolden(t *testing.T) {
	old := full()
	old.Committables[0].Checkpoint = 0 // which version 1 did not say
	for name, want := range map[string]*Checkpoint{
		"testdata/full.v1.checkpoint": old, "testdata/empty.v1.checkpoint": empty(),
		"testdata/full.v2.checkpoint": full(), "testdata/empty.v2.checkpoint": empty(),
	} {
		now := strings.Contains(name, ".v2.")
		if *rewrite && now {
			if err := os.WriteFile(name, want.Encode(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeCheckpoint(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s decodes otherwise (-want +got):\n%s", name, diff)
		}
		if now && !bytes.Equal(want.Encode(), data) {
			t.Errorf("%s is encoded otherwise now", name)
		}
	}
}

// TestDecodeDamaged cuts a checkpoint everywhere and turns every bit.
func TestDecodeDamaged(t *testing.T) {
	data := full().Encode()
	for n := range len(data) {
		if _, err := DecodeCheckpoint(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d bytes: %v, want ErrDamaged", n, err)
		}
	}
	for i := range 8 * len(data) {
		flipped := bytes.Clone(data)
		flipped[i/8] ^= 1 << (i % 8)
		if _, err := DecodeCheckpoint(flipped); !errors.Is(err, ErrDamaged) {
			t.Errorf("with bit %d of byte %d turned: %v, want ErrDamaged", i%8, i/8, err)
		}
	}
	if _, err := DecodeCheckpoint(append(data, 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a byte too much: %v, want ErrDamaged", err)
	}
}

// seal makes a frame of any version and payload.
func seal(version uint32, payload []byte) []byte {
	b := append([]byte(magic), binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, version), uint64(len(payload)))...)
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func TestDecodeLaterVersion(t *testing.T) {
	_, err := DecodeCheckpoint(seal(3, []byte("whatever")))
	later, ok := errors.AsType[*FormatError](err)
	if !ok || later.Version != 3 {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, ErrDamaged) {
		t.Errorf("a later version passes for damage: a run would go on from an older checkpoint")
	}
}

// TestDecodePayload has frames that are whole around payloads that are not.
func TestDecodePayload(t *testing.T) {
	payload := full().encodePayload()
	for n := range len(payload) {
		if _, err := DecodeCheckpoint(seal(formatVersion, payload[:n])); !errors.Is(err, ErrDamaged) {
			t.Errorf("payload cut to %d bytes: %v, want ErrDamaged", n, err)
		}
	}
	if _, err := DecodeCheckpoint(seal(formatVersion, append(payload, 0))); !errors.Is(err, ErrDamaged) {
		t.Errorf("payload with a byte too much: %v, want ErrDamaged", err)
	}
	strange := full()
	strange.Lanes = -1
	if _, err := DecodeCheckpoint(seal(formatVersion, strange.encodePayload())); !errors.Is(err, ErrDamaged) {
		t.Errorf("-1 lanes: %v, want ErrDamaged", err)
	}
}

// FuzzDecodeCheckpoint: no payload crashes the decoder or makes it allocate without bound, and what it accepts it
// encodes to something that means the same.
func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(full().encodePayload())
	f.Add(empty().encodePayload())
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if _, err := DecodeCheckpoint(payload); err == nil && !bytes.HasPrefix(payload, []byte(magic)) {
			t.Fatal("bytes without a frame are a checkpoint")
		}
		c, err := DecodeCheckpoint(seal(formatVersion, payload))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v, want ErrDamaged", err)
			}
			return
		}
		again, err := DecodeCheckpoint(c.Encode())
		if err != nil {
			t.Fatalf("it does not decode again: %v", err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatalf("it decodes otherwise (-first +second):\n%s", diff)
		}
	})
}

package storageread

import (
	"strconv"
	"strings"
	"testing"
)

// BenchmarkDecode decodes a block of 10,000 rows, of few columns and of every type.
func BenchmarkDecode(b *testing.B) {
	const narrow = `{"type":"record","name":"__root__","fields":[
		{"name":"id","type":["null","long"]},
		{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
		{"name":"name","type":["null","string"]},
		{"name":"score","type":["null","double"]},
		{"name":"ok","type":["null","boolean"]}]}`
	var block []byte
	for i := range 10_000 {
		block = avroLong(append(block, 2), int64(i))
		block = avroLong(append(block, 2), 1785027723456789+int64(i))
		block = avroBytes(append(block, 2), "a name of some length, "+strconv.Itoa(i))
		block = append(avroDouble(append(block, 2), 1.5), 2, 1)
	}
	b.Run("five columns", func(b *testing.B) { benchDecode(b, narrow, block) })

	all, _ := everyValue()
	every := []byte(strings.Repeat(string(all), 10_000))
	b.Run("every type", func(b *testing.B) { benchDecode(b, everyType, every) })
}

func benchDecode(b *testing.B, schema string, block []byte) {
	d := mustDecoder(b, schema, nil)
	b.SetBytes(int64(len(block)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := block; len(rest) > 0; {
			n, err := d.Decode(rest)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

package rowtest

import (
	"slices"

	"pgregory.net/rapid"
)

// Damaged draws a copy of data with a byte changed, some cut out, put in or cut off, and where that was. Data must not be empty.
func Damaged(t *rapid.T, data []byte) (bad []byte, at int) {
	at = rapid.IntRange(0, len(data)-1).Draw(t, "at")
	bad = slices.Clone(data)
	switch rapid.IntRange(0, 4).Draw(t, "damage") {
	case 0:
		bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case 1:
		bad[at] = rapid.Byte().Draw(t, "byte")
	case 2:
		bad = slices.Delete(bad, at, min(len(bad), at+rapid.IntRange(1, 4).Draw(t, "length")))
	case 3:
		bad = slices.Insert(bad, at, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes")...)
	default:
		bad = bad[:at]
	}
	return bad, at
}

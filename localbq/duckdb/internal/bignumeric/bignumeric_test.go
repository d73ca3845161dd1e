package bignumeric

import (
	"bytes"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) *big.Int {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 31).Draw(t, "magnitude"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		return n
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		back, err := Decode(Encode(a))
		if err != nil || back.Cmp(a) != 0 {
			t.Fatalf("%v came back as %v, %v", a, back, err)
		}
		if got := bytes.Compare(Encode(a), Encode(b)); got != a.Cmp(b) {
			t.Fatalf("%v and %v compare as %d", a, b, got)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	if _, err := Decode(make([]byte, 31)); err == nil {
		t.Error("31 bytes are taken for a number")
	}
}

package value

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecimalText(t *testing.T) {
	numeric, bignumeric := Decimal{}, Decimal{Big: true}
	small := Decimal{Precision: 10, Scale: 2}
	even := Decimal{Precision: 10, Scale: 2, HalfEven: true}
	cases := []struct {
		d    Decimal
		in   string
		want string // the scaled integer; "" is an error
	}{
		{numeric, "123.4", "123400000000"}, {numeric, "-9000000", "-9000000000000000"}, {numeric, "0", "0"}, {numeric, "+1", "1000000000"},
		{numeric, ".5", "500000000"}, {numeric, "5.", "5000000000"}, {numeric, "1e3", "1000000000000"}, {numeric, "15E-1", "1500000000"},
		{numeric, "0.0000000005", "1"}, {numeric, "-0.0000000005", "-1"}, {numeric, "0.0000000004", "0"},
		{numeric, strings.Repeat("9", 29) + ".999999999", strings.Repeat("9", 38)},
		{numeric, strings.Repeat("9", 29) + ".9999999995", ""}, {numeric, "1" + strings.Repeat("0", 29), ""}, {numeric, "1e300", ""}, {numeric, "0e999999999", "0"},
		{numeric, "1e-999999999", "0"},
		{numeric, "", ""}, {numeric, "x", ""}, {numeric, "1.2.3", ""}, {numeric, "1e", ""}, {numeric, "--1", ""}, {numeric, "1,0", ""}, {numeric, "NaN", ""},
		{bignumeric, "123456789012345678901234567890.1234567890", "12345678901234567890123456789012345678900000000000000000000000000000"}, // LBQ-79
		{bignumeric, "578960446186580977117854925043439539266.34992332820282019728792003956564819967", bigNumericMax.String()},
		{bignumeric, "578960446186580977117854925043439539266.34992332820282019728792003956564819968", ""},
		{bignumeric, "-578960446186580977117854925043439539266.34992332820282019728792003956564819968", bigNumericMin.String()},
		{small, "1.245", "125"}, {small, "-1.245", "-125"}, {small, "1.2449", "124"}, {small, "99999999.99", "9999999999"}, {small, "99999999.995", ""}, {small, "100000000", ""},
		{even, "1.245", "124"}, {even, "1.235", "124"}, {even, "1.2451", "125"},
	}
	for _, c := range cases {
		got, err := c.d.Text(c.in)
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%+v of %q: %v, want an error", c.d, c.in, got)
		case c.want != "" && (err != nil || got.String() != c.want):
			t.Errorf("LBQ-78 %+v of %q: %v, %v, want %s", c.d, c.in, got, err, c.want)
		}
	}
}

func TestDecimalBytes(t *testing.T) {
	// The table of encodings that the wire format documents (LBQ-76, LBQ-77).
	for in, want := range map[string]string{
		"": "0", "\x00": "0", "\x00\xca\x9a\x3b": "1000000000", "\x00\x36\x65\xc4": "-1000000000", "\x00\x8c\x86\x47": "1200000000",
		"\x00\x74\x79\xb8": "-1200000000", "\x80\x00": "128", "\xff": "-1",
		"\x00\x92\x36\xbb\x1c": "123400000000", "\x00\x80\x05\x35\x8c\x06\xe0": "-9000000000000000",
		"\xff\xff\xff\xff\x3f\x22\x8a\x09\x7a\xc4\x86\x5a\xa8\x4c\x3b\x4b": numericMax.String(),
	} {
		if got, err := (&Decimal{}).Bytes([]byte(in)); err != nil || got.String() != want {
			t.Errorf("% x: %v, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{strings.Repeat("\x01", 17), strings.Repeat("\xff", 15) + "\x7f"} {
		if got, err := (&Decimal{}).Bytes([]byte(in)); err == nil {
			t.Errorf("% x: %v, want an error", in, got)
		}
	}
	big256 := &Decimal{Big: true}
	for in, want := range map[string]*big.Int{
		strings.Repeat("\xff", 31) + "\x7f": bigNumericMax, strings.Repeat("\x00", 31) + "\x80": bigNumericMin, "\x01": big.NewInt(1),
	} {
		got, err := big256.Bytes([]byte(in))
		if err != nil || got.Cmp(want) != 0 {
			t.Errorf("% x: %v, %v, want %v", in, got, err, want)
			continue
		}
		if back := Num256(got).BigInt(); back.Cmp(want) != 0 {
			t.Errorf("% x becomes %v in 256 bits", in, back)
		}
	}
}

func TestDecimalBytesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := big.NewInt(rapid.Int64().Draw(t, "value"))
		msb := v.Bytes()
		if v.Sign() < 0 {
			msb = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), 72)).Bytes()
		} else {
			msb = append([]byte{0}, msb...)
		}
		slices.Reverse(msb)
		got, err := (&Decimal{}).Bytes(msb)
		if err != nil || got.Cmp(v) != 0 {
			t.Fatalf("% x: %v, %v, want %v", msb, got, err, v)
		}
		if back := Num128(got).BigInt(); back.Cmp(v) != 0 {
			t.Fatalf("%v becomes %v in 128 bits", v, back)
		}
	})
}

func TestDecimalFloatAndInt(t *testing.T) {
	d := &Decimal{}
	for in, want := range map[float64]string{0: "0", 1.5: "1500000000", -2.25: "-2250000000", 1e-10: "0", 0.1: "100000000", 1e28: "9999999999999999583119736832000000000"} {
		if got, err := d.Float(in); err != nil || got.String() != want {
			t.Errorf("%v: %v, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e30, math.MaxFloat64} {
		if got, err := d.Float(in); err == nil {
			t.Errorf("%v: %v, want an error", in, got)
		}
	}
	if got, err := d.Int(big.NewInt(math.MinInt64)); err != nil || got.String() != "-9223372036854775808000000000" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := (&Decimal{Precision: 3}).Int(big.NewInt(1000)); err == nil {
		t.Errorf("NUMERIC(3) takes %v", got)
	}
}

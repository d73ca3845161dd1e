package row

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/table"
)

func decimal(typ table.Type, precision, scale int64) Decimal {
	return DecimalOf(&table.Field{Type: typ, Precision: precision, Scale: scale})
}

const (
	numericMax    = "99999999999999999999999999999.999999999"
	bigNumericMax = "578960446186580977117854925043439539266.34992332820282019728792003956564819967"
	bigNumericMin = "-578960446186580977117854925043439539266.34992332820282019728792003956564819968"
)

// TestParseDecimal (SER-108, SER-109, SER-139, SER-140) holds the table of encodings, and what has none.
func TestParseDecimal(t *testing.T) {
	numeric, big := decimal(table.Numeric, 0, 0), decimal(table.BigNumeric, 0, 0)
	for _, c := range []struct {
		d          Decimal
		text, want string
		kind       Kind
	}{
		{numeric, "0", "00", ""}, {numeric, "-0", "00", ""}, {numeric, "0.000", "00", ""}, {numeric, "0e99999999999999999999", "00", ""},
		{numeric, "1", "00ca9a3b", ""}, {numeric, "-1", "003665c4", ""}, {numeric, "1.2", "008c8647", ""}, {numeric, "-1.2", "007479b8", ""},
		{numeric, "1.25", "807c814a", ""}, {numeric, "1.2500000000000", "807c814a", ""}, {numeric, "+1.25", "807c814a", ""}, {numeric, "125e-2", "807c814a", ""},
		{numeric, "0.000000128", "8000", ""}, {numeric, "-0.000000001", "ff", ""}, {numeric, "123.456", "00108dbe1c", ""}, {numeric, "1e2", "00e8764817", ""},
		{numeric, "12345678901234567890", "00b4dd66b1c9be46321be427", ""}, {numeric, numericMax, "ffffffff3f228a097ac4865aa84c3b4b", ""},
		{numeric, "0." + strings.Repeat("0", 400) + "1e401", "00ca9a3b", ""}, {numeric, "1" + strings.Repeat("0", 400) + "e-400", "00ca9a3b", ""},
		{big, "0", "00", ""}, {big, "1", "0000000040228a097ac4865aa84c3b4b", ""}, {big, "-1", "00000000c0dd75f6853b79a557b3c4b4", ""},
		{big, "1.5", "0000000060334f0eb726ca87fcf2d870", ""}, {big, "-9876.5", "00000000e0a149f6cae9a87be70ab98ea9f4", ""}, {big, "1e-38", "01", ""},
		{big, bigNumericMax, strings.Repeat("ff", 31) + "7f", ""}, {big, bigNumericMin, strings.Repeat("00", 31) + "80", ""},
		{big, bigNumericMin[1:], "", KindRange}, {big, strings.TrimSuffix(bigNumericMin, "8") + "9", "", KindRange},
		{big, "999999999999999999999999999999999999999.99999999999999999999999999999999999999", "", KindRange}, {big, "1e39", "", KindRange}, {big, "1e-39", "", KindScale},
		{numeric, "0.1234567891", "", KindScale}, {numeric, "1e-99999999999999999999", "", KindScale}, {numeric, "0." + strings.Repeat("3", 1000), "", KindScale},
		{numeric, "99999999999999999999999999999999", "", KindRange}, {numeric, "1e29", "", KindRange}, {numeric, "1e99999999999999999999", "", KindRange}, {numeric, strings.Repeat("7", 1000), "", KindRange},
		{decimal(table.Numeric, 10, 2), "1.23", "804f5049", ""}, {decimal(table.Numeric, 10, 2), "1.234", "", KindScale}, {decimal(table.Numeric, 10, 2), "1.230", "804f5049", ""},
		{decimal(table.Numeric, 10, 2), "123456789.1", "", KindRange}, {decimal(table.Numeric, 9, 9), "1", "", KindRange}, {decimal(table.Numeric, 9, 9), "0.5", "0065cd1d", ""},
		{numeric, "", "", KindType}, {numeric, "-", "", KindType}, {numeric, ".", "", KindType}, {numeric, "1.2.3", "", KindType}, {numeric, "1e", "", KindType}, {numeric, "1e+", "", KindType},
		{numeric, "e1", "", KindType}, {numeric, "1x", "", KindType}, {numeric, " 1", "", KindType}, {numeric, "--1", "", KindType}, {numeric, "NaN", "", KindType}, {numeric, "1e1.5", "", KindType},
		{numeric, ".5", "0065cd1d", ""}, {numeric, "5.", "00f2052a01", ""},
	} {
		v, err := ParseDecimal(c.d, c.text)
		got := ""
		if err == nil {
			got = hex.EncodeToString(AppendScaled(nil, v)[1:])
		}
		if kind := kindOf(t, err); kind != c.kind || got != c.want {
			t.Errorf("ParseDecimal(%+v, %.60q) = %s, %v, want %s, %q", c.d, c.text, got, err, c.want, c.kind)
		}
	}
}

// The property finds what the table above leaves.
func TestParseDecimalAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]table.Type{table.Numeric, table.BigNumeric}).Draw(t, "type")
		d := decimal(typ, 0, 0)
		if typ == table.Numeric && rapid.Bool().Draw(t, "declared") {
			d = decimal(typ, 12, 3)
		}
		text := rapid.StringMatching(`-?[0-9]{1,45}(\.[0-9]{1,45})?(e[-+]?[0-9]{1,2})?`).Draw(t, "text")
		want, wantKind := slowDecimal(d, text)
		got, err := ParseDecimal(d, text)
		if kind := Kind(""); err != nil {
			kind = err.(*ValueError).Kind
			// A number that is both too big and too fine may be refused for either.
			if wantKind == "" || kind != wantKind && wantKind != "both" {
				t.Fatalf("ParseDecimal(%+v, %q) = %v, want %v, %q", d, text, err, want, wantKind)
			}
			return
		}
		if wantKind != "" {
			t.Fatalf("ParseDecimal(%+v, %q) is accepted, want %s", d, text, wantKind)
		}
		wire := AppendScaled(nil, got)[1:]
		if want.Cmp(slowTwosComplement(wire)) != 0 {
			t.Fatalf("%q is %x on the wire, which is %v, want %v", text, wire, slowTwosComplement(wire), want)
		}
		if len(wire) > 1 && want.Cmp(slowTwosComplement(wire[:len(wire)-1])) == 0 {
			t.Fatalf("%q is %x on the wire, which a byte less says as well", text, wire)
		}
		checkForms(t, d, got)
	})
}

// checkForms takes a value through its other forms and back.
func checkForms(t *rapid.T, d Decimal, v Scaled) {
	if back, err := ScaledFromWire(AppendScaled(nil, v)[1:]); err != nil || back != v {
		t.Fatalf("the wire form of %v reads back as %v, %v", v, back, err)
	}
	if back, err := ScaledFromBigEndian(v.AppendBigEndian(nil)); err != nil || back != v {
		t.Fatalf("the big-endian form of %v reads back as %v, %v", v, back, err)
	}
	text := string(v.AppendText(nil, d.Scale()))
	if back, err := ParseDecimal(d, text); err != nil || back != v {
		t.Fatalf("the text %s of %v reads back as %v, %v", text, v, back, err)
	}
	rat, _ := new(big.Rat).SetString(text)
	if v.Rat(d.Scale()).Cmp(rat) != 0 {
		t.Fatalf("Rat of %s is %v", text, v.Rat(d.Scale()))
	}
	if back, err := d.FromRat(rat); err != nil || back != v {
		t.Fatalf("FromRat(%v) = %v, %v, want %v", rat, back, err, v)
	}
}

// slowDecimal is ParseDecimal by way of big.Rat. The kind "both" is a number that is out of range and too fine.
func slowDecimal(d Decimal, text string) (*big.Int, Kind) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, KindType
	}
	ten := func(n int) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	}
	fine := !new(big.Rat).Mul(r, ten(d.fraction)).IsInt()
	scaled := new(big.Rat).Mul(r, ten(d.scale))
	limit := new(big.Int).Lsh(big.NewInt(1), 255) // BIGNUMERIC: -2^255 to 2^255-1, scaled
	wide := scaled.Cmp(new(big.Rat).SetInt(limit)) >= 0 || scaled.Cmp(new(big.Rat).SetInt(new(big.Int).Neg(limit))) < 0
	if d.integer < 39 {
		wide = new(big.Rat).Abs(r).Cmp(ten(d.integer)) >= 0
	}
	switch {
	case wide && fine:
		return nil, "both"
	case wide:
		return nil, KindRange
	case fine:
		return nil, KindScale
	}
	return scaled.Num(), ""
}

func slowTwosComplement(little []byte) *big.Int {
	b := slices.Clone(little)
	slices.Reverse(b)
	v := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func TestFromRatRefuses(t *testing.T) {
	for _, c := range []struct {
		num, den string
		kind     Kind
	}{{"1", "3", KindScale}, {"1", "10000000000", KindScale}, {"100000000000000000000000000000", "1", KindRange}} {
		r, _ := new(big.Rat).SetString(c.num + "/" + c.den)
		if _, err := decimal(table.Numeric, 0, 0).FromRat(r); kindOf(t, err) != c.kind {
			t.Errorf("FromRat(%v) = %v, want %s", r, err, c.kind)
		}
	}
}

func TestScaledBytesRefuses(t *testing.T) {
	if _, err := ScaledFromWire(make([]byte, 33)); err == nil {
		t.Error("33 bytes on the wire are accepted")
	}
	if v, err := ScaledFromWire(nil); err != nil || v != (Scaled{}) {
		t.Errorf("no bytes are %v, %v, want zero", v, err)
	}
	if v, err := ScaledFromBigEndian(slices.Repeat([]byte{0xff}, 40)); err != nil || string(v.AppendText(nil, 0)) != "-1" {
		t.Errorf("-1 in 40 bytes is %v, %v", v, err)
	}
	if _, err := ScaledFromBigEndian(slices.Repeat([]byte{1}, 33)); err == nil {
		t.Error("33 big-endian bytes that matter are accepted")
	}
}

func TestDecimalAllocatesNothing(t *testing.T) {
	text := []byte("-12345678901234567890.123456789")
	d := decimal(table.Numeric, 0, 0)
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		v, err := ParseDecimal(d, text)
		if err != nil {
			t.Fatal(err)
		}
		AppendScaled(buf, v)
		v.AppendText(buf, 9)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func ExampleParseDecimal() {
	v, err := ParseDecimal(DecimalOf(&table.Field{Type: table.Numeric}), "1.25")
	fmt.Printf("%x %v\n", AppendScaled(nil, v), err)
	// Output: 04807c814a <nil>
}

// TestFit turns what a column has on the wire into decimals of its own scale.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		d        Decimal
		in, want string // decimal text; want is the integer
		kind     Kind
	}{
		{decimal(table.Numeric, 0, 0), "123.456", "123456000000", ""},
		{decimal(table.Numeric, 0, 0), numericMax, "99999999999999999999999999999999999999", ""},
		{decimal(table.Numeric, 10, 2), "-1.23", "-123", ""},
		{decimal(table.Numeric, 10, 2), "99999999.99", "9999999999", ""},
		{decimal(table.Numeric, 10, 2), "-99999999.99", "-9999999999", ""},
		{decimal(table.Numeric, 10, 2), "100000000", "", KindRange},
		{decimal(table.Numeric, 10, 2), "-100000000", "", KindRange},
		{decimal(table.Numeric, 10, 2), "1.234", "", KindScale},
		{decimal(table.Numeric, 10, 2), "-0.000000001", "", KindScale},
		{decimal(table.BigNumeric, 0, 0), bigNumericMax, strings.ReplaceAll(bigNumericMax, ".", ""), ""},
		{decimal(table.BigNumeric, 0, 0), bigNumericMin, strings.ReplaceAll(bigNumericMin, ".", ""), ""},
		{decimal(table.BigNumeric, 38, 0), "99999999999999999999999999999999999999", "99999999999999999999999999999999999999", ""},
		{decimal(table.BigNumeric, 38, 0), "100000000000000000000000000000000000000", "", KindRange},
		{decimal(table.BigNumeric, 38, 0), "0.5", "", KindScale},
	} {
		typ := table.Numeric
		if c.d.Scale() == 38 {
			typ = table.BigNumeric
		}
		v, err := ParseDecimal(decimal(typ, 0, 0), c.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.d.Fit(v)
		text := ""
		if err == nil {
			text = string(got.AppendText(nil, 0))
		}
		if kind := kindOf(t, err); kind != c.kind || text != c.want {
			t.Errorf("Fit(%+v, %s) = %s, %v, want %s, %q", c.d, c.in, text, err, c.want, c.kind)
		}
	}
}

// TestRescale holds Rescale to the way through text.
func TestRescale(t *testing.T) {
	fields := []table.Field{{Type: table.Numeric}, {Type: table.BigNumeric}, {Type: table.Numeric, Precision: 5, Scale: 2},
		{Type: table.BigNumeric, Precision: 40, Scale: 1}}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(fields).Draw(t, "field")
		d := DecimalOf(&f)
		digits := rapid.StringMatching(`-?[0-9]{1,40}0{0,36}`).Draw(t, "digits")
		scale := rapid.IntRange(-40, 80).Draw(t, "scale")
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok {
			t.Fatalf("%s is no number", digits)
		}
		v, err := ScaledFromBigEndian(twosComplement(n))
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := d.FromBig(n, scale)
		got, err := d.Rescale(v, scale)
		if got != want || err != wantErr && !(err != nil && wantErr != nil) {
			t.Fatalf("%s / 10^%d: %v, %v, want %v, %v", digits, scale, got, err, want, wantErr)
		}
	})
}

// twosComplement is n in 32 bytes, most significant first.
func twosComplement(n *big.Int) []byte {
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 256))
	}
	return n.FillBytes(make([]byte, 32))
}

// TestRounded holds Rounded to big.Rat, which rounds halves away from zero too.
func TestRounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`-?[0-9]{1,60}[05]{0,10}`).Draw(t, "digits")
		from, to := rapid.IntRange(0, 77).Draw(t, "from"), rapid.IntRange(0, 38).Draw(t, "to")
		precision := rapid.IntRange(max(to, 1), 38).Draw(t, "precision")
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok {
			t.Fatalf("%s is no number", digits)
		}
		v, err := ScaledFromBigEndian(twosComplement(n))
		if err != nil {
			t.Fatal(err)
		}
		exact := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(from)), nil))
		text := strings.Replace(exact.FloatString(to), ".", "", 1)
		want, ok := new(big.Int).SetString(text, 10)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		fits := new(big.Int).Abs(want).Cmp(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)) < 0
		got, ok := v.Rounded(from, to, precision)
		if ok != fits || ok && got.Rat(0).Num().Cmp(want) != 0 {
			t.Fatalf("%s / 10^%d to %d digits behind the point, %d in all: %v, %v, want %v, %v", digits, from, to, precision, got.Rat(0), ok, want, fits)
		}
	})
}

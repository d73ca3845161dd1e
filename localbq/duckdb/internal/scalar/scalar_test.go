package scalar

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

var anyTime = rapid.Int64Range(-62_135_596_800_000_000+400*day, 253_402_300_799_999_999-400*day)

var anyPart = rapid.SampledFrom([]string{
	"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "WEEK(MONDAY)", "WEEK(SATURDAY)", "ISOWEEK", "MONTH", "QUARTER", "YEAR", "ISOYEAR",
})

// TestTruncate holds that a period begins where it is truncated to: not after the time, at a boundary, and with no boundary
// between.
func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, part := anyTime.Draw(t, "at"), anyPart.Draw(t, "part")
		start, err := Truncate(at, part, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		if start > at {
			t.Fatalf("%s of %d is %d, which is later", part, at, start)
		}
		if n, err := Diff(at, start, part); err != nil || n != 0 {
			t.Fatalf("%d %s lie between %d and its start %d, %v", n, part, at, start, err)
		}
		if n, err := Diff(start, start-1, part); err != nil || n != 1 {
			t.Fatalf("%s of %d starts at %d, which is no boundary: %d, %v", part, at, start, n, err)
		}
	})
}

// TestWeekNumber compares with counting the days.
func TestWeekNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := at(anyTime.Draw(t, "at"))
		start := rapid.Int64Range(0, 6).Draw(t, "start")
		want := int64(0)
		for x := time.Date(d.Year(), 1, 1, 0, 0, 0, 0, time.UTC); !x.After(d); x = x.AddDate(0, 0, 1) {
			if int64(x.Weekday()) == start {
				want++
			}
		}
		if got := weekNumber(d, start); got != want {
			t.Fatalf("%v is in week %d by weekday %d, want %d", d, got, start, want)
		}
	})
}

func TestFormatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := anyTime.Draw(t, "at")
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Los_Angeles", "+05:30"}).Draw(t, "zone")
		format := rapid.SampledFrom([]string{"%Y-%m-%dT%H:%M:%E6S%Ez", "%F %T.%z", "%d %B %E4Y %I:%M:%E6S %p %Ez", "%Y %j %H:%M:%E6S %Ez"}).Draw(t, "format")
		if strings.HasPrefix(format, "%F") {
			at -= ((at % second) + second) % second
			format = "%F %T %z"
		}
		// Offsets before standard time have seconds, which %Ez does not print.
		if at < -2_000_000_000_000_000 {
			zone = "UTC"
		}
		text, err := Strftime(format, at, zone)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Strptime(format, text, "UTC", "TIMESTAMP")
		if err != nil || back != at {
			t.Fatalf("%d in %s is %q by %q, which is read as %d, %v", at, zone, text, format, back, err)
		}
	})
}

func TestIntegersAgainstBig(t *testing.T) {
	edge := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64}))
	ops := map[string]struct {
		ours func(a, b int64) (int64, error)
		big  func(z, a, b *big.Int) *big.Int
	}{
		"+": {AddInt, (*big.Int).Add}, "-": {SubtractInt, (*big.Int).Sub}, "*": {MultiplyInt, (*big.Int).Mul}, "DIV": {DivInt, (*big.Int).Quo}, "MOD": {ModInt, (*big.Int).Rem},
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := edge.Draw(t, "a"), edge.Draw(t, "b")
		for name, op := range ops {
			got, err := op.ours(a, b)
			if b == 0 && (name == "DIV" || name == "MOD") {
				if err == nil {
					t.Fatalf("%d %s 0 is %d", a, name, got)
				}
				continue
			}
			want := op.big(new(big.Int), big.NewInt(a), big.NewInt(b))
			if want.IsInt64() != (err == nil) || err == nil && want.Int64() != got {
				t.Fatalf("%d %s %d is %d, %v; want %v", a, name, b, got, err, want)
			}
		}
	})
}

func TestRoundNumericAgainstRat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := big.NewInt(rapid.Int64().Draw(t, "v"))
		n := rapid.Int64Range(-6, 9).Draw(t, "n")
		got, err := RoundNumeric(v, n)
		if err != nil {
			t.Fatal(err)
		}
		// FloatString rounds half away from zero.
		want := new(big.Rat).SetFrac(v, numericUnit)
		shift := new(big.Rat).SetFrac(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(-n, 0)), nil), big.NewInt(1))
		text := new(big.Rat).Quo(want, shift).FloatString(int(max(n, 0)))
		rounded, _ := new(big.Rat).SetString(text)
		if rounded.Mul(rounded, shift); rounded.Cmp(new(big.Rat).SetFrac(got, numericUnit)) != 0 {
			t.Fatalf("ROUND(%s, %d) is %s, want %s", numericText(v), n, numericText(got), rounded.FloatString(9))
		}
	})
}

func TestFarmFingerprint(t *testing.T) {
	// The example of the GoogleSQL reference, FARM_FINGERPRINT.
	for s, want := range map[string]int64{"1footrue": -1541654101129638711, "2applefalse": 2794438866806483259, "3true": -4880158226897771312} {
		if got, _ := FarmFingerprint([]byte(s)); got != want {
			t.Errorf("%s: got %d, want %d", s, got, want)
		}
	}
	seen := map[int64]int{}
	for n := range 300 { // every length has its own path up to 64, and loops behind it
		got, err := FarmFingerprint([]byte(strings.Repeat("x", n)))
		if other, ok := seen[got]; ok || err != nil {
			t.Errorf("lengths %d and %d hash alike, %v", n, other, err)
		}
		seen[got] = n
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		err  func() error
		want string
	}{
		"int":       {func() error { _, err := TextToInt("12x"); return err }, "Bad int64 value: 12x"},
		"double":    {func() error { _, err := TextToFloat("0x1p4"); return err }, "Bad double value: 0x1p4"},
		"bool":      {func() error { _, err := TextToBool("yes"); return err }, "Bad bool value: yes"},
		"date":      {func() error { _, err := TextToDate("2020-02-30"); return err }, "Invalid date: '2020-02-30'"},
		"zone":      {func() error { _, err := Local(0, "Mars/Olympus"); return err }, "Invalid time zone: Mars/Olympus"},
		"zero zone": {func() error { _, err := Local(0, ""); return err }, "Invalid time zone: "},
		"overflow":  {func() error { _, err := DateAdd(2_932_896, 1, "DAY"); return err }, "Adding 1 DAY to date 9999-12-31 causes overflow"},
		"far":       {func() error { _, err := DateAdd(0, math.MaxInt64, "YEAR"); return err }, "Adding 9223372036854775807 YEAR to date 1970-01-01 causes overflow"},
		"months":    {func() error { _, err := InstantAdd(0, Span{Months: 1}); return err }, "TIMESTAMP +/- INTERVAL is not supported for intervals with non-zero MONTH or YEAR part."},
		"regexp":    {func() error { _, err := RegexpContains("a", "("); return err }, "Cannot parse regular expression: missing closing ): `(`"},
		"groups":    {func() error { _, _, err := RegexpExtract("ab", "(a)(b)", 1, 1); return err }, "Regular expression passed to REGEXP_EXTRACT must not have more than 1 capturing group"},
		"array":     {func() error { _, err := Offset(3, 3); return err }, "Array index 3 is out of bounds (overflow)"},
		"step":      {func() error { _, err := GenerateArray(1, 2, 0); return err }, "Sequence step cannot be 0 in GENERATE_ARRAY"},
		"many":      {func() error { _, err := GenerateArray(1, math.MaxInt64, 1); return err }, "GENERATE_ARRAY: the array would have more than 4194304 elements"},
		"repeat":    {func() error { _, err := Repeat("xx", math.MaxInt64/2); return err }, "Output of REPEAT exceeds max allowed output size of 67108864 bytes"},
		"format":    {func() error { _, _, err := Format("%d", []Argument{{Type: "STRING", String: new("x")}}); return err }, "Error in FORMAT string: invalid type for argument 2 to FORMAT: expected another than STRING for %d"},
		"few":       {func() error { _, _, err := Format("%d", nil); return err }, "Error in FORMAT string: too few arguments: expected more than 0"},
		"many args": {func() error { _, _, err := Format("x", []Argument{{}}); return err }, `Too many arguments to FORMAT for pattern "x": expected 0, got 1`},
		"strptime":  {func() error { _, err := Strptime("%Y", "x", "UTC", "DATE"); return err }, `Failed to parse input string "x": expected a number from 1 to 9999 at "x"`},
		"numeric":   {func() error { _, err := MultiplyNumeric(numericMax, numericMax); return err }, "numeric overflow: 99999999999999999999999999999.999999999 * 99999999999999999999999999999.999999999"},
	} {
		if err := c.err(); err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzStrptime(f *testing.F) {
	f.Add("%Y-%m-%d %H:%M:%E*S%Ez", "2020-01-01 00:00:00.5+01:00")
	f.Add("%a %b %e %I:%M:%S %p %Y %Z", "Thu Dec 25 07:30:00 AM 2008 UTC")
	f.Add("%s %Q %j %y %D %c", "1 2 3 4 5")
	f.Fuzz(func(t *testing.T, format, s string) {
		var at int64
		var err error
		hostile.Proportional(t, len(format)+len(s), 1024, 1<<20, func() {
			at, err = Strptime(format, s, "UTC", "TIMESTAMP")
			Strftime(format, 0, "UTC")
		})
		if err == nil && !strings.Contains(format, "%s") && (at < -62_135_683_200_000_000 || at > 253_402_387_200_000_000) {
			t.Errorf("%q by %q is %d", s, format, at)
		}
	})
}

package text

import (
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDateTimeAgainstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62_135_596_800_000_000, 253_402_300_799_999_999).Draw(t, "micros")
		at := time.UnixMicro(micros).UTC()
		layout := "2006-01-02T15:04:05"
		if at.Nanosecond() != 0 {
			layout += ".000000"
		}
		if got, want := string(AppendDateTime(nil, micros, 'T')), at.Format(layout); got != want {
			t.Fatalf("AppendDateTime(%d) = %s, want %s", micros, got, want)
		}
	})
}

func TestFloatReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		for _, s := range []string{string(AppendFloat(nil, v)), string(AppendSQLFloat(nil, v))} {
			if got, err := strconv.ParseFloat(s, 64); err != nil || got != v {
				t.Fatalf("%v printed as %s reads as %v, %v", v, s, got, err)
			}
		}
	})
}

func TestForms(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{AppendDate(nil, 300), "1970-10-28"},
		{AppendDate(nil, -719_162), "0001-01-01"},
		{AppendDate(nil, 2_932_896), "9999-12-31"},
		{AppendTime(nil, 0), "00:00:00"},
		{AppendTime(nil, 47_655_016_000), "13:14:15.016000"},
		{AppendTime(nil, 86_399_999_999), "23:59:59.999999"},
		{AppendSQLTime(nil, 47_655_016_000), "13:14:15.016"},
		{AppendSQLTime(nil, 47_655_016_001), "13:14:15.016001"},
		{AppendSQLDateTime(nil, -1), "1969-12-31 23:59:59.999999"},
		{AppendSeconds(nil, 1_408_452_095_220_000), "1408452095.220000"},
		{AppendSeconds(nil, -1), "-0.000001"},
		{AppendFloat(nil, 1), "1.0"},
		{AppendFloat(nil, 0.001), "0.001"},
		{AppendFloat(nil, 1e10), "1.0E10"},
		{AppendFloat(nil, -2.5e-7), "-2.5E-7"},
		{AppendFloat(nil, math.NaN()), "NaN"},
		{AppendFloat(nil, math.Inf(-1)), "-Infinity"},
		{AppendSQLFloat(nil, 1), "1"},
		{AppendSQLFloat(nil, 1e20), "1e+20"},
		{AppendSQLFloat(nil, math.Inf(1)), "inf"},
		{AppendDecimal(nil, big.NewInt(123_400_000_000), 9), "123.4"},
		{AppendDecimal(nil, big.NewInt(-9_000_000), 9), "-0.009"},
		{AppendDecimal(nil, big.NewInt(0), 9), "0"},
		{AppendDecimal64(nil, 1, 9), "0.000000001"},
		{AppendDecimal64(nil, -5_000_000_000, 9), "-5"},
		{AppendDecimal64(nil, 100, 0), "100"},
		{AppendInterval(nil, 14, -3, 3_723_500_000), "1-2 -3 1:2:3.5"},
		{AppendInterval(nil, -14, 0, -1), "-1-2 0 -0:0:0.000001"},
		{AppendInterval(nil, 0, 0, 0), "0-0 0 0:0:0"},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

package value

import (
	"testing"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// FuzzText reads any text as a value of every type that has one: reading ends, and costs what there is to read.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"2024-02-29", "12:34:56.789", "2024-02-29T12:34:56.789", "2024-02-29 12:34:56+01:00", "9999-12-31T23:59:59.999999999999Z", "1-2 3 4:5:6.7", "P1Y2M3DT4H5M6.7S",
		"1e1000000000", "-1.5e-999999999", "99999999999999999999999999999.999999999", "POINT(1 2)", "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING EMPTY)",
		"POLYGON((0 0, 0 1, 1 1, 0 0), (0 0, 1 1, 0 1, 0 0))", `{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}`, "10675199-0 0 0:0:0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hostile.Proportional(t, len(s), 256, 4<<20, func() {
			_, _ = Date(s)
			_, _ = Time(s)
			_, _ = DateTime(s)
			_, _ = Timestamp(s)
			_, _ = TimestampPicos(s)
			_, _ = Interval(s)
			for _, d := range []Decimal{{}, {Big: true}, {Precision: 5, Scale: 2, HalfEven: true}} {
				_, _ = d.Text(s)
				_, _ = d.Bytes([]byte(s))
			}
			shape, err := Geography(s)
			if err != nil {
				return
			}
			if again, err := Geography(shape); utf8.ValidString(s) && (err != nil || again != shape) {
				t.Errorf("%q is %s, which is %s, %v", s, shape, again, err)
			}
		})
	})
}

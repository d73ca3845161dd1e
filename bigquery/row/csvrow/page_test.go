package csvrow

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var pageRow = regexp.MustCompile("^\\| `([A-Z0-9]+)` \\| `(.*)` \\| `(.*)` \\|$")

// TestPage runs the table of docs/reference/csv.md.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/csv.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[table.Type]bool{}
	for n, line := range strings.Split(string(text), "\n") {
		m := pageRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		typ, err := table.ParseType(m[1])
		if err != nil {
			t.Fatal(err)
		}
		types[typ] = true
		s := newSerializer(t, Options{}, field("c", typ))
		got := ""
		v, err := values(t, s, record{nil, []byte(m[2])})
		var e *row.Error
		if errors.As(err, &e) {
			got = string(e.Kind)
		} else {
			got = printed(typ, v[0])
		}
		if got != m[3] {
			t.Errorf("docs/reference/csv.md:%d: %s %s is %s, the page says %s", n+1, m[1], m[2], got, m[3])
		}
	}
	for typ := table.Bool; typ < table.Range; typ++ {
		if !types[typ] {
			t.Errorf("%v is not on the page", typ)
		}
	}
}

func printed(t table.Type, v row.Value) string {
	switch t {
	case table.Int64:
		return fmt.Sprint(v.Int)
	case table.Float64:
		return fmt.Sprint(math.Float64frombits(uint64(v.Int)))
	case table.Bool:
		return fmt.Sprint(v.Int == 1)
	case table.Numeric, table.BigNumeric:
		s, err := row.ScaledFromBigEndian(v.Bytes)
		if err != nil {
			return err.Error()
		}
		return string(s.AppendText(nil, int(v.Int)))
	case table.Date:
		return string(row.AppendDate(nil, v.Int))
	case table.Time:
		return string(row.AppendTime(nil, v.Int))
	case table.DateTime:
		return string(row.AppendDateTime(nil, v.Int))
	case table.Timestamp:
		return string(row.AppendTimestamp(nil, v.Int))
	case table.Interval:
		return string(row.AppendInterval(nil, v.List[0].Int, v.List[1].Int, v.List[2].Int))
	}
	return string(v.Bytes)
}

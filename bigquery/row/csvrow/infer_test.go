package csvrow

import (
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestInference(t *testing.T) {
	for name, c := range map[string]struct {
		cells []string
		want  table.Type
	}{
		"whole numbers":       {[]string{"1", "-2", "", "9223372036854775807"}, table.Int64},
		"numbers":             {[]string{"1", "2.5", "1e3"}, table.Float64},
		"many digits":         {[]string{"1", "12345678901234567.25"}, table.Numeric},
		"larger than INT64":   {[]string{"9223372036854775808"}, table.Numeric},
		"more digits":         {[]string{"1.00000000000000000001"}, table.String},
		"leading zeros":       {[]string{"1", "007"}, table.String},
		"a sign":              {[]string{"+1"}, table.String},
		"booleans":            {[]string{"true", "FALSE"}, table.Bool},
		"dates":               {[]string{"2026-07-26", "1999-01-01"}, table.Date},
		"times":               {[]string{"01:02:03", "12:34:56.789"}, table.Time},
		"date and time":       {[]string{"2026-07-26 01:02:03", "2026-07-26T01:02:03.5"}, table.DateTime},
		"instants":            {[]string{"2026-07-26T01:02:03Z", "2026-07-26 01:02:03+02:00"}, table.Timestamp},
		"date, then instant":  {[]string{"2026-07-26", "2026-07-26T01:02:03Z"}, table.String},
		"no zone, then one":   {[]string{"2026-07-26T01:02:03", "2026-07-26T01:02:03Z"}, table.String},
		"text":                {[]string{"1", "x"}, table.String},
		"nothing":             {[]string{"", ""}, table.String},
		"an empty text":       {[]string{"1", `""`}, table.String},
		"infinity":            {[]string{"Infinity"}, table.String},
		"a date that is none": {[]string{"2026-02-30"}, table.String},
	} {
		t.Run(name, func(t *testing.T) {
			inf, err := NewInference(Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range c.cells {
				if err := inf.Add([]byte("c"), []byte(cell)); err != nil {
					t.Fatal(err)
				}
			}
			m, err := inf.Schema()
			if err != nil || m.Schema.Fields[0].Type != c.want {
				t.Errorf("%v, %v, want %v", m, err, c.want)
			}
			s, err := New(read, m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range c.cells {
				if _, err := s.AppendRow(nil, dst, record{[]byte("c"), []byte(cell)}); err != nil {
					t.Errorf("%q, which it was inferred from: %v", cell, err)
				}
			}
		})
	}
}

func TestInferredNames(t *testing.T) {
	inf, err := NewInference(Options{Delimiter: ';'})
	if err != nil {
		t.Fatal(err)
	}
	header := []byte("Order ID;order_id;1st;`; DROP;ΔT;;_PARTITION;a\"b")
	if err := inf.Add(header, nil); err == nil {
		t.Error("a quote within a name: want an error")
	}
	header = header[:len(header)-4]
	if err := inf.Add(header, []byte("1;2;3;4;5;6;7;8")); err != nil {
		t.Fatal(err)
	}
	m, err := inf.Schema()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Order_ID", "order_id_2", "c_1st", "column4", "_DROP", "_T", "column7", "c__PARTITION"}
	for i, f := range m.Schema.Fields {
		if f.Name != want[i] {
			t.Errorf("%q is %q, want %q", m.Names[i], f.Name, want[i])
		}
	}
	s, err := New(read, m, Options{Delimiter: ';'})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendRow(nil, dst, record{header, []byte("1;2;3;4;5;6;7;8")}); err != nil {
		t.Error(err)
	}
	wantError(t, inf.Add([]byte("other"), []byte("1")), row.KindHeader, "")
	none, err := NewInference(Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = none.Schema()
	wantError(t, err, row.KindSchema, "")
	for _, r := range []string{"1,x", "2,y,3"} {
		if err := none.Add(nil, []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if m, err = none.Schema(); err != nil || len(m.Schema.Fields) != 3 || m.Schema.Fields[2].Name != "column3" || m.Names != nil {
		t.Errorf("%v, %v", m, err)
	}
}

package csvrow

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Inference derives a table's schema from records: each column gets the narrowest type that takes every cell seen, and
// comes back as the same value. It belongs to one goroutine.
//
// The types are, in this order, INT64, FLOAT64 and NUMERIC for numbers that the type holds exactly, BOOL, DATE, TIME,
// DATETIME, TIMESTAMP for texts with a zone, and STRING for everything else, for texts with leading zeros, and for columns
// that never held a value.
type Inference struct {
	options Options
	header  string
	titles  []string
	columns []kinds
	records int
}

// kinds are the types that every value of a column has had.
type kinds struct {
	can  uint16 // a bit for each of candidates
	seen bool
}

// candidates are the types that are tried, the narrowest first.
var candidates = [...]table.Type{table.Int64, table.Float64, table.Numeric, table.Bool, table.Date, table.Time, table.DateTime, table.Timestamp}

// NewInference makes an Inference of records that are written as the options say.
func NewInference(o Options) (*Inference, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	return &Inference{options: o}, nil
}

// Add learns from a record under a header; without one, columns are called column1, column2 and so on. A record that cannot
// be cut into cells, and one under another header than those before, is an error and changes nothing.
func (inf *Inference) Add(header, record []byte) error {
	cells, nulls, err := inf.cut(record)
	if err != nil {
		return err
	}
	if inf.titles == nil {
		if err := inf.begin(header, len(cells)); err != nil {
			return err
		}
	}
	if string(header) != inf.header {
		return &row.Error{Kind: row.KindHeader, Offset: -1, Msg: "the header is another than that of the files before: give the schema"}
	}
	if len(cells) > len(inf.columns) && header == nil {
		inf.begin(nil, len(cells))
	}
	for i := range min(len(cells), len(inf.columns)) {
		if !nulls[i] {
			inf.columns[i].learn(cells[i])
		}
	}
	inf.records++
	return nil
}

// begin makes room for columns; those that are there stay.
func (inf *Inference) begin(header []byte, n int) (err error) {
	titles := []string{}
	if header != nil {
		if titles, err = Fields(header, inf.options); err != nil {
			return headerError("", "cannot be read: %v", err)
		}
		n = len(titles)
	}
	inf.header, inf.titles = string(header), titles
	for len(inf.columns) < n {
		inf.columns = append(inf.columns, kinds{can: 1<<len(candidates) - 1})
	}
	return nil
}

func (inf *Inference) cut(record []byte) (cells []string, nulls []bool, err error) {
	s := newScanner(inf.options)
	s.reset(record)
	p := parser{options: &inf.options}
	for {
		c, ok, err := s.next()
		if err != nil {
			return nil, nil, row.At(err, "", int64(c.at))
		}
		if !ok {
			return cells, nulls, nil
		}
		cells, nulls = append(cells, string(c.text)), append(nulls, !c.quoted && p.null(c.text))
	}
}

func (k *kinds) learn(text string) {
	k.seen = true
	p := parser{options: &Options{}}
	for i, t := range candidates {
		bit := uint16(1) << i
		if k.can&bit != 0 && !fits(&p, t, text) {
			k.can &^= bit
		}
	}
}

// fits says whether a text is a value of a type that is read back as the same.
func fits(p *parser, t table.Type, text string) bool {
	if numeric := t == table.Int64 || t == table.Float64 || t == table.Numeric; numeric && !plainNumber(text) {
		return false
	}
	c := column{typ: t}
	switch t {
	case table.Numeric:
		c.decimal = row.DecimalOf(&table.Field{Type: t})
	case table.Float64:
		// As many digits as every FLOAT64 keeps.
		if len(strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(text), "0")) > 15 {
			return false
		}
	case table.Timestamp:
		// A time without a zone is a DATETIME; in a TIMESTAMP column it would be UTC, which the text does not say.
		if fits(p, table.DateTime, text) || len(text) < len("2006-01-02T15:04:05Z") {
			return false
		}
	case table.DateTime:
		if len(text) < len("2006-01-02T15:04:05") {
			return false
		}
	}
	_, err := p.value(nil, &c, []byte(text))
	return err == nil
}

// plainNumber says whether a text is a number as programs write it: an identifier such as 007 is none.
func plainNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return len(digits) > 0 && digits[0]-'0' <= 9 && (digits[0] != '0' || len(digits) == 1 || digits[1] == '.') && digits[len(digits)-1]-'0' <= 9
}

// Schema answers what was learnt. Names that no column can have are written with _ for every character that BigQuery refuses;
// the Mapping says what the header calls them. The error says that there was no record.
func (inf *Inference) Schema() (*Mapping, error) {
	if inf.records == 0 {
		return nil, &row.Error{Kind: row.KindSchema, Offset: -1, Msg: "no record to infer a schema from"}
	}
	m := &Mapping{Schema: &table.Schema{}}
	taken := map[string]bool{}
	for i, k := range inf.columns {
		title := "column" + strconv.Itoa(i+1)
		if i < len(inf.titles) {
			title = inf.titles[i]
		}
		m.Schema.Fields = append(m.Schema.Fields, table.Field{Name: columnName(title, i, taken), Type: k.typ()})
		m.Names = append(m.Names, title)
	}
	if len(inf.titles) == 0 {
		m.Names = nil
	}
	return m, row.CheckSchema(m.Schema)
}

// Records is how many records were learnt from.
func (inf *Inference) Records() int { return inf.records }

func (k kinds) typ() table.Type {
	if k.seen {
		for i, t := range candidates {
			if k.can>>i&1 != 0 {
				return t
			}
		}
	}
	return table.String
}

// columnName is a name for a column that every write method takes and no column before has.
func columnName(title string, i int, taken map[string]bool) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, title)
	if strings.Trim(name, "_") == "" {
		name = "column" + strconv.Itoa(i+1)
	}
	if name[0] >= '0' && name[0] <= '9' || table.ReservedPrefix(name) != "" {
		name = "c_" + name
	}
	name = name[:min(len(name), table.MaxNameLength-10)]
	for base, n := name, 2; taken[table.FoldName(name)]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	taken[table.FoldName(name)] = true
	return name
}

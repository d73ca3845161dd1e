package load

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/load/csvfile"
	"github.com/millrace-dev/millrace/localbq/internal/load/jsonfile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// guess is what the values of one column have been so far.
type guess struct {
	name     string
	seen     schema.Type // 0 is nothing but NULL
	repeated bool
	members  *guesses
}

type guesses struct {
	order []*guess
	by    map[string]*guess
}

func newGuesses() *guesses { return &guesses{by: map[string]*guess{}} }

func (g *guesses) of(name string) *guess {
	key := strings.ToLower(name)
	if g.by[key] == nil {
		g.by[key] = &guess{name: name}
		g.order = append(g.order, g.by[key])
	}
	return g.by[key]
}

// schema is the columns; one that only ever was NULL is text.
func (g *guesses) schema() *schema.Schema {
	out := &schema.Schema{}
	for _, c := range g.order {
		f := &schema.Field{Name: c.name, Type: c.seen}
		if c.repeated {
			f.Mode = schema.Repeated
		}
		if c.seen == 0 {
			f.Type = schema.String
		}
		if c.seen == schema.Struct {
			f.Fields = c.members.schema().Fields
			if len(f.Fields) == 0 {
				continue
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// add takes a type in.
func (c *guess) add(t schema.Type) error {
	switch {
	case t == 0 || c.seen == t:
	case c.seen == 0:
		c.seen = t
	case c.seen == schema.Struct || t == schema.Struct:
		return fmt.Errorf("field %s is an object in one row and none in another", c.name)
	case c.seen == schema.Int64 && t == schema.Float64, c.seen == schema.Float64 && t == schema.Int64:
		c.seen = schema.Float64
	case c.seen == schema.Date && t == schema.Timestamp, c.seen == schema.Timestamp && t == schema.Date:
		c.seen = schema.Timestamp
	default:
		c.seen = schema.String
	}
	return nil
}

func detectJSON(in io.Reader) (*schema.Schema, error) {
	r := jsonfile.New(in, nil)
	all := newGuesses()
	for range sampled {
		record, bad, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all.schema(), nil
		case err != nil:
			return nil, err
		case bad != nil:
			return nil, bad
		}
		if err := all.record(record); err != nil {
			return nil, err
		}
	}
	return all.schema(), nil
}

func (g *guesses) record(r column.Record) error {
	for _, m := range r {
		if err := g.of(m.Name).value(m.Value); err != nil {
			return err
		}
	}
	return nil
}

func (c *guess) value(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case column.List:
		c.repeated = true
		for _, e := range v {
			if err := c.value(e); err != nil {
				return err
			}
		}
		return nil
	case column.Record:
		if c.members == nil {
			c.members = newGuesses()
		}
		if err := c.add(schema.Struct); err != nil {
			return err
		}
		return c.members.record(v)
	case bool:
		return c.add(schema.Bool)
	case column.Number:
		if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return c.add(schema.Int64)
		}
		return c.add(schema.Float64)
	case string:
		return c.add(textType(v))
	}
	return nil
}

// textType is what a text looks like.
func textType(s string) schema.Type {
	switch {
	case strings.EqualFold(s, "true") || strings.EqualFold(s, "false"):
		return schema.Bool
	case is(strconv.ParseInt(s, 10, 64)):
		return schema.Int64
	case isFloat(s):
		return schema.Float64
	case is(value.Date(s)):
		return schema.Date
	case is(value.Time(s)):
		return schema.Time
	case is(value.Timestamp(s)):
		return schema.Timestamp
	}
	return schema.String
}

func is[T any](_ T, err error) bool { return err == nil }

func isFloat(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xXpP_")
}

// detectCSV guesses types column by column, and takes the first row for names where it is text over columns that are none.
func (j *job) detectCSV(in io.Reader) (*schema.Schema, error) {
	o := j.csv()
	skip := o.Skip
	o.Skip = max(0, skip-1) // the last row that is skipped names the columns
	r, err := csvfile.New(in, nil, o)
	if err != nil {
		return nil, err
	}
	var rows [][]csvfile.Field
	for len(rows) < sampled {
		row, bad, err := r.Row()
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, bad); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return &schema.Schema{}, nil
	}
	header := skip > 0
	body := rows[1:]
	if !header && len(body) > 0 {
		if header = isHeader(rows[0], body); header {
			j.Config.CSV.Skip++
		}
	}
	if !header {
		body = rows
	}
	all := newGuesses()
	for i, f := range rows[0] {
		name := fmt.Sprintf("%s_field_%d", "string", i)
		c := &guess{}
		for _, row := range body {
			if i < len(row) && row[i].Text != "" {
				if err := c.add(textType(row[i].Text)); err != nil {
					return nil, err
				}
			}
		}
		if header {
			name = columnName(f.Text)
		} else if c.seen != 0 {
			name = fmt.Sprintf("%s_field_%d", strings.ToLower(c.seen.Legacy()), i)
		}
		all.of(name).seen = c.seen
	}
	return all.schema(), nil
}

// isHeader reports whether the first row is text throughout, over rows that are not.
func isHeader(first []csvfile.Field, body [][]csvfile.Field) bool {
	for _, f := range first {
		if textType(f.Text) != schema.String {
			return false
		}
	}
	for _, row := range body {
		for _, f := range row {
			if f.Text != "" && textType(f.Text) != schema.String {
				return true
			}
		}
	}
	return false
}

// columnName makes a header a name of a column.
func columnName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("!\"$()*,./;?@[\\]^`{}~ \t\n", r) {
			return '_'
		}
		return r
	}, strings.TrimSpace(s))
	if s == "" {
		return "_"
	}
	return s
}

package jsonrow

import (
	"math"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// kind is a kind of JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindObject
	kindArray
	kinds
)

var kindWords = [kinds]string{"null", "booleans", "numbers", "strings", "objects", "arrays"}

// node is what is known of all values of one field.
type node struct {
	path   string
	forced bool // InferOptions.JSONPaths names it

	counts     [kinds]int
	sawContent bool // of a forced field, which is not looked into: something was in it

	keys     []string         // of objects, in order of appearance
	children map[string]*node // of objects
	element  *node            // of arrays, nil while all were empty

	// Of numbers: some of them…
	beyondInt64, fractional, beyondFloat, beyondNumeric, beyondBigNumeric bool
	// Of strings: some of them…
	notTimestamp, notDate bool
	respelt               bool // is a timestamp that reads back in another spelling
}

// content says whether any string, number or boolean was seen in the field or below it.
func (n *node) content() bool {
	if n.sawContent || n.counts[kindBool]+n.counts[kindNumber]+n.counts[kindString] > 0 {
		return true
	}
	if n.element != nil && n.element.content() {
		return true
	}
	for _, key := range n.keys {
		if n.children[key].content() {
			return true
		}
	}
	return false
}

func (n *node) walk(visit func(*node)) {
	visit(n)
	if n.element != nil {
		n.element.walk(visit)
	}
	for _, key := range n.keys {
		n.children[key].walk(visit)
	}
}

var (
	asNumeric    = row.DecimalOf(&table.Field{Type: table.Numeric})
	asBigNumeric = row.DecimalOf(&table.Field{Type: table.BigNumeric})
)

func (n *node) number(lit []byte, whole bool) {
	if !whole {
		n.fractional = true
	} else if _, ok := parseInt(lit); !ok {
		n.beyondInt64 = true
	}
	v, err := strconv.ParseFloat(string(lit), 64)
	n.beyondFloat = n.beyondFloat || err != nil || math.IsInf(v, 0) || !survives(lit, v)
	if !n.beyondNumeric {
		_, err := row.ParseDecimal(asNumeric, lit)
		n.beyondNumeric = err != nil
	}
	if n.beyondNumeric && !n.beyondBigNumeric {
		// Numbers before this one fitted NUMERIC, so they fit BIGNUMERIC.
		_, err := row.ParseDecimal(asBigNumeric, lit)
		n.beyondBigNumeric = err != nil
	}
}

func (n *node) string(content []byte) {
	if !n.notTimestamp {
		micros, err := row.ParseTimestamp(content)
		n.notTimestamp = err != nil || !timestampShape(content)
		var text [len("0000-00-00T00:00:00.000000Z")]byte
		n.respelt = n.respelt || err == nil && string(row.AppendTimestamp(text[:0], micros)) != string(content)
	}
	if !n.notDate {
		_, err := row.ParseDate(content)
		n.notDate = err != nil || !dateShape(content)
	}
}

// seen names the kinds of values that were seen, null aside, with how many there were: "3 strings and 1 objects" reads
// badly, so one is not counted: "3 strings and an object".
func (n *node) seen(withNull bool) string {
	var words []string
	for k := range kinds {
		if c := n.counts[k]; c > 0 && (k != kindNull || withNull) {
			words = append(words, countWord(c, k))
		}
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func countWord(n int, k kind) string {
	switch {
	case k == kindNull:
		return "null"
	case n > 1:
		return strconv.Itoa(n) + " " + kindWords[k]
	case k == kindObject || k == kindArray:
		return "an " + strings.TrimSuffix(kindWords[k], "s")
	}
	return "a " + strings.TrimSuffix(kindWords[k], "s")
}

// only is the one kind of value that was seen, null aside; ok is false when there were several, or none.
func (n *node) only() (k kind, ok bool) {
	for c := kindBool; c < kinds; c++ {
		if n.counts[c] == 0 {
			continue
		}
		if ok {
			return 0, false
		}
		k, ok = c, true
	}
	return k, ok
}

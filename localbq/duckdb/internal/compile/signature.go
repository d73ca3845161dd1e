package compile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// signature is one way to call a function.
type signature struct {
	params   []parameter
	variadic bool // the last parameter may come any number of times, also never
	result   parameter
	template string
	volatile bool
}

// parameter is the type of an argument, or of a result.
type parameter struct {
	typ      Type
	any      bool            // whatever the type
	template string          // T or ARRAY<T>: one type for the whole signature
	parts    map[string]bool // a date part of these; the argument is a word
	span     bool            // INTERVAL n part, of which the template takes number and part as two arguments
}

// signatures are the functions and operators by name.
var signatures = parseSignatures(functionTable)

var signatureLine = regexp.MustCompile(`^(!?)(\S+)\((.*?)\)\s+(\S+)\s+=\s+(.*)$`)

// parseSignatures reads the table of functions. A mistake in it is a bug of this package.
func parseSignatures(table string) map[string][]signature {
	out := map[string][]signature{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := signatureLine.FindStringSubmatch(line)
		if m == nil {
			panic("compile: table of functions: " + line)
		}
		s := signature{volatile: m[1] == "!", result: parseParameter(m[4]), template: m[5]}
		params, variadic := strings.CutSuffix(m[3], "...")
		s.variadic = variadic
		if params != "" {
			for p := range strings.SplitSeq(params, ", ") {
				s.params = append(s.params, parseParameter(p))
			}
		}
		out[m[2]] = append(out[m[2]], s)
	}
	return out
}

// partSets are the date parts that functions take (GoogleSQL reference, functions of each type).
var partSets = map[string]map[string]bool{
	"date": words("DAY WEEK ISOWEEK MONTH QUARTER YEAR ISOYEAR"),
	"time": words("MICROSECOND MILLISECOND SECOND MINUTE HOUR"),
	"all":  words("MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK ISOWEEK MONTH QUARTER YEAR ISOYEAR"),
	// Spans of time that can be added to a DATE, a TIME, a DATETIME and a TIMESTAMP.
	"dates":    words("DAY WEEK MONTH QUARTER YEAR"),
	"civils":   words("MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR"),
	"instants": words("MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY"),
}

func parseParameter(s string) parameter {
	switch {
	case s == "ANY":
		return parameter{any: true}
	case s == "T" || s == "ARRAY<T>":
		return parameter{template: s}
	case strings.HasPrefix(s, "PART:"):
		return parameter{parts: partSets[s[5:]]}
	case strings.HasPrefix(s, "SPAN:"):
		return parameter{parts: partSets[s[5:]], span: true}
	case strings.HasPrefix(s, "ARRAY<"):
		return parameter{typ: arrayOf(parseParameter(s[6 : len(s)-1]).typ)}
	case strings.HasPrefix(s, "RANGE<"):
		k, _ := schema.ParseType(s[6 : len(s)-1])
		return parameter{typ: Type{Kind: schema.Range, Range: k}}
	}
	k, ok := schema.ParseType(s)
	if !ok {
		panic("compile: table of functions: type " + s)
	}
	return parameter{typ: Type{Kind: k}}
}

// argument is what a call passes: a value, or a word that is a date part, or a span.
type argument struct {
	value
	expr googlesql.Expr
	span *googlesql.Interval
}

// match fits arguments to the signature: the SQL of each place of the template and the result's type. cost counts the
// arguments that had to be coerced.
func (s *signature) match(args []argument) (places []string, result Type, cost int, ok bool) {
	least := len(s.params)
	if s.variadic {
		least--
	}
	if len(args) < least || len(args) > len(s.params) && !s.variadic {
		return nil, Type{}, 0, false
	}
	t, ok := s.bind(args)
	if !ok {
		return nil, Type{}, 0, false
	}
	for i, a := range args {
		p := s.param(i)
		switch {
		case p.span:
			if a.span == nil || a.span.To != "" || !p.parts[a.span.From] {
				return nil, Type{}, 0, false
			}
			places = append(places, a.sql, quote(a.span.From))
		case p.parts != nil:
			part, ok := datePart(a.expr, p.parts)
			if !ok {
				return nil, Type{}, 0, false
			}
			places = append(places, quote(part))
		case a.sql == "":
			return nil, Type{}, 0, false
		case p.any:
			places = append(places, a.sql)
		default:
			v, ok := coerce(a.value, p.of(t))
			if !ok {
				return nil, Type{}, 0, false
			}
			if !a.typ.same(v.typ) {
				cost++
			}
			places = append(places, v.sql)
		}
	}
	return places, s.result.of(t), cost, true
}

func (s *signature) param(i int) parameter { return s.params[min(i, len(s.params)-1)] }

// of is the parameter's type where T is t.
func (p parameter) of(t Type) Type {
	switch p.template {
	case "T":
		return t
	case "ARRAY<T>":
		return arrayOf(settled(t))
	}
	return p.typ
}

// bind finds the type that T stands for.
func (s *signature) bind(args []argument) (Type, bool) {
	var values []value
	for i, a := range args {
		switch v := a.value; s.param(i).template {
		case "T":
			values = append(values, v)
		case "ARRAY<T>":
			if !v.typ.Array && !v.typ.untyped() {
				return Type{}, false
			}
			v.typ, v.text, v.literal = v.typ.element(), nil, nil
			values = append(values, v)
		}
	}
	return common(values)
}

// datePart reads DAY, or WEEK(MONDAY).
func datePart(e googlesql.Expr, allowed map[string]bool) (string, bool) {
	switch e := e.(type) {
	case *googlesql.Path:
		name := strings.ToUpper(e.Names[0].Text)
		return name, len(e.Names) == 1 && allowed[name]
	case *googlesql.Call:
		if e.Name != "WEEK" || len(e.Args) != 1 || !allowed["WEEK"] {
			return "", false
		}
		if day, ok := e.Args[0].(*googlesql.Path); ok && len(day.Names) == 1 {
			name := strings.ToUpper(day.Names[0].Text)
			return "WEEK(" + name + ")", weekdays[name]
		}
	}
	return "", false
}

var weekdays = words("SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY")

// choose picks the signature that takes the arguments with the fewest coercions, the first of several; nil for none.
func choose(signatures []signature, args []argument, pos googlesql.Pos) (best *signature, places []string, result Type, err error) {
	least := -1
	for i := range signatures {
		p, t, cost, ok := signatures[i].match(args)
		if ok && (least < 0 || cost < least) {
			best, places, result, least = &signatures[i], p, t, cost
		}
	}
	if best != nil && best.template == "unsupported" {
		return nil, nil, Type{}, pos.Unsupported("this on type %s", result)
	}
	return best, places, result, nil
}

func valueArguments(values []value) []argument {
	args := make([]argument, len(values))
	for i, v := range values {
		args[i].value = v
	}
	return args
}

// apply compiles a call of a name in the table; false where no signature takes the operands.
func (c *compiler) apply(name string, operands []value, pos googlesql.Pos) (value, bool, error) {
	return c.applyArguments(name, valueArguments(operands), false, pos)
}

func (c *compiler) applyArguments(name string, args []argument, safe bool, pos googlesql.Pos) (value, bool, error) {
	sig, places, t, err := choose(signatures[name], args, pos)
	if sig == nil || err != nil {
		return value{}, false, err
	}
	c.volatile = c.volatile || sig.volatile
	operands := make([]value, len(args))
	for i, a := range args {
		operands[i] = a.value
	}
	return expr(pos, settled(t), operands, "%s", fill(sig.template, places, safe)), true, nil
}

// placeholder is a place of a template: $1 one argument, $* all of them, $[# IS NULL| OR ] all of them, each in the form
// before the bar and joined by what is behind it.
var placeholder = regexp.MustCompile(`\$\[(.*?)\|(.*?)\]|\$\*|\$\d`)

// fill puts arguments into a template. Functions of the engine, bq_…, have a twin bqs_… that answers NULL where they fail;
// safe asks for it. Of anything else that may fail DuckDB's TRY makes NULL.
func fill(template string, places []string, safe bool) string {
	tried := safe && tries(template)
	if safe {
		template = strings.ReplaceAll(template, "bq_", "bqs_")
	}
	sql := placeholder.ReplaceAllStringFunc(template, func(m string) string {
		switch {
		case m == "$*":
			return strings.Join(places, ", ")
		case m[1] == '[':
			form := placeholder.FindStringSubmatch(m)
			items := make([]string, len(places))
			for i, p := range places {
				items[i] = strings.ReplaceAll(form[1], "#", p)
			}
			return strings.Join(items, form[2])
		}
		n := int(m[1] - '0')
		if n > len(places) {
			panic(fmt.Sprintf("compile: template %s has %d arguments", template, len(places)))
		}
		return places[n-1]
	})
	if tried {
		return "TRY(" + sql + ")"
	}
	return sql
}

// tries reports whether the safe form of a template takes TRY: it calls something of DuckDB's.
func tries(template string) bool {
	return !strings.Contains(template, "bq_") && strings.Contains(template, "(") && !strings.HasPrefix(template, "CAST($1 AS")
}

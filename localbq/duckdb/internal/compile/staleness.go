package compile

import (
	"strconv"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/scalar"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// optionStaleness reads an INTERVAL literal. NULL is one of nothing: BigQuery goes on showing the option.
func optionStaleness(x googlesql.Expr) (*schema.Staleness, error) {
	if isNull(x) {
		return &schema.Staleness{}, nil
	}
	literal, ok := x.(*googlesql.Interval)
	if !ok {
		return nil, x.At().Errorf("Expected an INTERVAL literal as the value of this option")
	}
	span, err := spanOf(literal)
	if err != nil {
		return nil, err
	}
	if span.Months < 0 || span.Days < 0 || span.Micros < 0 {
		return nil, literal.Pos.Errorf("Invalid value: max_staleness must not be negative")
	}
	return &schema.Staleness{Months: span.Months, Days: span.Days, Micros: span.Micros}, nil
}

// spanOf is the value of an INTERVAL literal.
func spanOf(e *googlesql.Interval) (span scalar.Span, err error) {
	l, err := optionLiteral(e.Value)
	if err != nil {
		return span, e.Pos.Errorf("Invalid interval literal: expected an integer or a string")
	}
	switch {
	case l.Kind == googlesql.String:
		parts := e.From
		if e.To != "" {
			parts += " " + e.To
		}
		span, err = scalar.TextToInterval(l.Text, parts)
	case l.Kind == googlesql.Integer && e.To == "" && intervalParts[e.From]:
		var n int64
		if n, err = strconv.ParseInt(l.Text, 0, 64); err == nil {
			span, err = scalar.MakeInterval(n, e.From)
		}
	default:
		return span, e.Pos.Errorf("Invalid interval literal: expected an integer or a string, and parts of an INTERVAL")
	}
	if err != nil {
		return span, e.Pos.Errorf("%v", err)
	}
	return span, nil
}

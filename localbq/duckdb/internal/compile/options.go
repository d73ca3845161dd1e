package compile

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// tableOptions applies OPTIONS of a table or view to its definition.
func (c *compiler) tableOptions(options []googlesql.Option, d *schema.Definition) error {
	for _, o := range options {
		var err error
		switch name := strings.ToLower(o.Name.Text); name {
		case "description":
			d.Description, err = optionText(o.Value)
		case "friendly_name":
			d.FriendlyName, err = optionText(o.Value)
		case "labels":
			d.Labels, err = optionLabels(o.Value)
		case "max_staleness":
			d.MaxStaleness, err = optionStaleness(o.Value)
		case "require_partition_filter":
			d.RequirePartitionFilter, err = optionBool(o.Value)
		case "expiration_timestamp":
			err = c.expiration(o.Value, d)
		case "partition_expiration_days":
			var days float64
			days, err = optionFloat(o.Value)
			if d.Partition != nil {
				d.Partition.ExpirationMs = int64(days * dayMs)
			} else if err == nil && d.Schema != nil {
				err = o.Name.Pos.Errorf("partition_expiration_days can only be set on tables partitioned by time")
			}
		case "enable_refresh":
			var on bool
			if on, err = optionBool(o.Value); err == nil && (d.View == nil || !d.View.Materialized) {
				err = o.Name.Pos.Errorf("enable_refresh can only be set on materialized views")
			}
			if err == nil {
				d.View.Refresh = on
			}
		default:
			err = o.Name.Pos.Unsupported("option %s", o.Name.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const dayMs = 24 * 60 * 60 * 1000

func (c *compiler) expiration(x googlesql.Expr, d *schema.Definition) error {
	if isNull(x) {
		d.ExpirationMs = 0
		return nil
	}
	at, err := c.instant(x)
	if err == nil {
		d.ExpirationMs = at.UnixMilli()
	}
	return err
}

func columnOptions(options []googlesql.Option, f *schema.Field) (err error) {
	for _, o := range options {
		switch strings.ToLower(o.Name.Text) {
		case "description":
			f.Description, err = optionText(o.Value)
		case "rounding_mode":
			f.RoundingMode, err = optionText(o.Value)
		default:
			err = o.Name.Pos.Unsupported("option %s of a column", o.Name.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schemaOptions applies OPTIONS of a schema.
func schemaOptions(options []googlesql.Option, d *query.DatasetOptions) (err error) {
	for _, o := range options {
		var days float64
		switch strings.ToLower(o.Name.Text) {
		case "location":
			d.Location, err = optionText(o.Value)
		case "description":
			d.Description, err = optionText(o.Value)
		case "friendly_name":
			d.FriendlyName, err = optionText(o.Value)
		case "labels":
			d.Labels, err = optionLabels(o.Value)
		case "default_table_expiration_days":
			days, err = optionFloat(o.Value)
			d.TableExpirationMs = int64(days * dayMs)
		case "default_partition_expiration_days":
			days, err = optionFloat(o.Value)
			d.PartitionExpirationMs = int64(days * dayMs)
		case "max_time_travel_hours":
			d.TimeTravelHours, err = optionInteger(o.Value)
		default:
			err = o.Name.Pos.Unsupported("option %s of a schema", o.Name.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Values of options are literals.

func optionLiteral(x googlesql.Expr) (*googlesql.Literal, error) {
	sign := ""
	if u, ok := x.(*googlesql.Unary); ok && u.Op == "-" {
		sign, x = "-", u.X
	}
	l, ok := x.(*googlesql.Literal)
	if !ok {
		return nil, x.At().Unsupported("this expression in OPTIONS: literals are")
	}
	if sign != "" {
		negative := *l
		negative.Text = sign + l.Text
		l = &negative
	}
	return l, nil
}

func isNull(x googlesql.Expr) bool {
	l, ok := x.(*googlesql.Literal)
	return ok && l.Kind == googlesql.Null
}

func optionText(x googlesql.Expr) (string, error) {
	l, err := optionLiteral(x)
	switch {
	case err != nil:
		return "", err
	case l.Kind == googlesql.Null:
		return "", nil
	case l.Kind != googlesql.String:
		return "", l.Pos.Errorf("Expected a STRING as the value of this option")
	}
	return l.Text, nil
}

func optionBool(x googlesql.Expr) (bool, error) {
	l, err := optionLiteral(x)
	switch {
	case err != nil:
		return false, err
	case l.Kind == googlesql.Null:
		return false, nil
	case l.Kind != googlesql.Bool:
		return false, l.Pos.Errorf("Expected a BOOL as the value of this option")
	}
	return strings.EqualFold(l.Text, "TRUE"), nil
}

func optionInteger(x googlesql.Expr) (int64, error) {
	l, err := optionLiteral(x)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(l.Text, 10, 64)
	if l.Kind != googlesql.Integer || err != nil {
		return 0, l.Pos.Errorf("Expected an INT64")
	}
	return n, nil
}

func optionFloat(x googlesql.Expr) (float64, error) {
	l, err := optionLiteral(x)
	switch {
	case err != nil:
		return 0, err
	case l.Kind == googlesql.Null:
		return 0, nil
	}
	v, err := strconv.ParseFloat(l.Text, 64)
	if l.Kind != googlesql.Integer && l.Kind != googlesql.Float || err != nil {
		return 0, l.Pos.Errorf("Expected a FLOAT64 as the value of this option")
	}
	return v, nil
}

// optionLabels reads [("key", "value"), …].
func optionLabels(x googlesql.Expr) (map[string]string, error) {
	if isNull(x) {
		return nil, nil
	}
	a, ok := x.(*googlesql.Array)
	if !ok {
		return nil, x.At().Errorf("Expected an ARRAY<STRUCT<STRING, STRING>> as the value of this option")
	}
	out := map[string]string{}
	for _, e := range a.Elements {
		s, ok := e.(*googlesql.Struct)
		if !ok || len(s.Fields) != 2 {
			return nil, e.At().Errorf("Expected a STRUCT<STRING, STRING> as a label")
		}
		key, err := optionText(s.Fields[0])
		if err != nil {
			return nil, err
		}
		if out[key], err = optionText(s.Fields[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

//go:build cgo

package duckdb

import (
	"errors"
	"math/big"
	"slices"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/scalar"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// functions are the functions of the engine that compiled queries call.
func functions() []native.Function {
	return slices.Concat(
		arithmetic(), rounding(), conversions(), bigNumerics(), texts(), expressions(), arrays(),
		civilCasts(), civilArithmetic(), civilFormats(), jsons(), printing(),
	)
}

func arithmetic() []native.Function {
	return slices.Concat(
		map2("add", kInt, kInt, kInt, scalar.AddInt),
		map2("add", kFloat, kFloat, kFloat, scalar.AddFloat),
		map2("add", kNumeric, kNumeric, kNumeric, scalar.AddNumeric),
		map2("subtract", kInt, kInt, kInt, scalar.SubtractInt),
		map2("subtract", kFloat, kFloat, kFloat, scalar.SubtractFloat),
		map2("subtract", kNumeric, kNumeric, kNumeric, scalar.SubtractNumeric),
		map2("multiply", kInt, kInt, kInt, scalar.MultiplyInt),
		map2("multiply", kFloat, kFloat, kFloat, scalar.MultiplyFloat),
		map2("multiply", kNumeric, kNumeric, kNumeric, scalar.MultiplyNumeric),
		map2("divide", kInt, kInt, kFloat, scalar.DivideInt),
		map2("divide", kFloat, kFloat, kFloat, scalar.DivideFloat),
		map2("divide", kNumeric, kNumeric, kNumeric, scalar.DivideNumeric),
		map2("ieee_divide", kFloat, kFloat, kFloat, scalar.IEEEDivide),
		map2("div", kInt, kInt, kInt, scalar.DivInt),
		map2("div", kNumeric, kNumeric, kNumeric, scalar.DivNumeric),
		map2("mod", kInt, kInt, kInt, scalar.ModInt),
		map2("mod", kNumeric, kNumeric, kNumeric, scalar.ModNumeric),
		map2("floor_div", kInt, kInt, kInt, scalar.FloorDiv),
		map2("shift", kInt, kInt, kInt, scalar.Shift),
		map1("sum", kHuge, kInt, sumOf),
		map2("average", kNumeric, kInt, kNumeric, scalar.Average),
		map1("error", kText, kInt, func(s string) (int64, error) { return 0, errors.New(s) }),
	)
}

// sumOf is a SUM of INT64, which DuckDB adds up in 128 bits.
func sumOf(n *big.Int) (int64, error) {
	if !n.IsInt64() {
		return 0, errors.New("int64 overflow in SUM: " + n.String())
	}
	return n.Int64(), nil
}

func rounding() []native.Function {
	return slices.Concat(
		map2("round", kFloat, kInt, kFloat, scalar.RoundFloat),
		map2("round", kNumeric, kInt, kNumeric, scalar.RoundNumeric),
		map2("trunc", kFloat, kInt, kFloat, scalar.TruncFloat),
		map2("trunc", kNumeric, kInt, kNumeric, scalar.TruncNumeric),
		map1("sqrt", kFloat, kFloat, scalar.Sqrt),
		map2("pow", kFloat, kFloat, kFloat, scalar.Pow),
		map1("exp", kFloat, kFloat, scalar.Exp),
		map1("log", kFloat, kFloat, scalar.Ln),
		map2("log", kFloat, kFloat, kFloat, scalar.Log),
	)
}

func conversions() []native.Function {
	return slices.Concat(
		map1("int64", kFloat, kInt, scalar.FloatToInt),
		map1("int64", kNumeric, kInt, scalar.NumericToInt),
		map1("int64", kText, kInt, scalar.TextToInt),
		map1("float64", kText, kFloat, scalar.TextToFloat),
		map1("numeric", kFloat, kNumeric, scalar.FloatToNumeric),
		map1("numeric", kText, kNumeric, scalar.TextToNumeric),
		map1("bool", kText, kBool, scalar.TextToBool),
		map1("string", kFloat, kText, func(v float64) (string, error) { return string(text.AppendSQLFloat(nil, v)), nil }),
		map1("string", kNumeric, kText, func(v *big.Int) (string, error) { return string(text.AppendDecimal(nil, v, 9)), nil }),
		map1("string", kSpan, kText, scalar.IntervalText),
		map1("utf8", kBlob, kText, scalar.UTF8),
		map1("utf8_lossy", kBlob, kText, scalar.UTF8Lossy),
	)
}

func bigNumerics() []native.Function {
	return slices.Concat(
		map1("bignumeric", kInt, kBigNumeric, scalar.IntToBig),
		map1("bignumeric", kFloat, kBigNumeric, scalar.FloatToBig),
		map1("bignumeric", kNumeric, kBigNumeric, scalar.NumericToBig),
		map1("bignumeric", kText, kBigNumeric, scalar.TextToBig),
		map2("big_add", kBigNumeric, kBigNumeric, kBigNumeric, scalar.AddBig),
		map2("big_subtract", kBigNumeric, kBigNumeric, kBigNumeric, scalar.SubtractBig),
		map2("big_multiply", kBigNumeric, kBigNumeric, kBigNumeric, scalar.MultiplyBig),
		map2("big_divide", kBigNumeric, kBigNumeric, kBigNumeric, scalar.DivideBig),
		map1("big_negate", kBigNumeric, kBigNumeric, scalar.NegateBig),
		map1("big_abs", kBigNumeric, kBigNumeric, scalar.AbsBig),
		map1("bignumeric_int64", kBigNumeric, kInt, scalar.BigToInt),
		map1("bignumeric_float64", kBigNumeric, kFloat, scalar.BigToFloat),
		map1("bignumeric_numeric", kBigNumeric, kNumeric, scalar.BigToNumeric),
		map1("bignumeric_string", kBigNumeric, kText, scalar.BigToText),
	)
}

func texts() []native.Function {
	all := func(f func(string, int64, int64) (string, error)) func(string, int64) (string, error) {
		return func(s string, position int64) (string, error) { return f(s, position, scalar.All) }
	}
	allBytes := func(b []byte, position int64) ([]byte, error) { return scalar.SubstrBytes(b, position, scalar.All) }
	return slices.Concat(
		map2("substr", kText, kInt, kText, all(scalar.Substr)),
		map3("substr", kText, kInt, kInt, kText, scalar.Substr),
		map2("substr", kBlob, kInt, kBlob, allBytes),
		map3("substr", kBlob, kInt, kInt, kBlob, scalar.SubstrBytes),
		map2("left", kText, kInt, kText, scalar.Left),
		map2("right", kText, kInt, kText, scalar.Right),
		map1("lower", kText, kText, scalar.Lower),
		map1("upper", kText, kText, scalar.Upper),
		map1("initcap", kText, kText, scalar.Initcap),
		map1("trim", kText, kText, scalar.Trim),
		map1("ltrim", kText, kText, scalar.LTrim),
		map1("rtrim", kText, kText, scalar.RTrim),
		map2("trim", kText, kText, kText, scalar.TrimOf),
		map2("ltrim", kText, kText, kText, scalar.LTrimOf),
		map2("rtrim", kText, kText, kText, scalar.RTrimOf),
		map3("lpad", kText, kInt, kText, kText, scalar.LPad),
		map3("rpad", kText, kInt, kText, kText, scalar.RPad),
		map2("repeat", kText, kInt, kText, scalar.Repeat),
		map3("replace", kText, kText, kText, kText, scalar.Replace),
		map1("reverse", kText, kText, scalar.Reverse),
		map4("instr", kText, kText, kInt, kInt, kInt, whole(scalar.Instr)),
		map1("ascii", kText, kInt, scalar.ASCII),
		map1("unicode", kText, kInt, scalar.Unicode),
		map1("chr", kInt, kText, scalar.Chr),
		map1("from_base64", kText, kBlob, scalar.FromBase64),
		map1("from_hex", kText, kBlob, scalar.FromHex),
		map1("sha512", kBlob, kBlob, scalar.SHA512),
		map1("farm_fingerprint", kBlob, kInt, scalar.FarmFingerprint),
		map1("geography", kText, kText, scalar.Geography),
	)
}

func expressions() []native.Function {
	return slices.Concat(
		map2("regexp_contains", kText, kText, kBool, scalar.RegexpContains),
		map4("regexp_extract", kText, kText, kInt, kInt, kText, scalar.RegexpExtract),
		map3("regexp_replace", kText, kText, kText, kText, scalar.RegexpReplace),
		lists("regexp_extract_all", []native.Type{native.Varchar, native.Varchar}, kText, func(args []native.Vector, i int) ([]string, error) {
			return scalar.RegexpExtractAll(kText.get(&args[0], i), kText.get(&args[1], i))
		}),
	)
}

func arrays() []native.Function {
	return slices.Concat(
		map2("offset", kInt, kInt, kInt, scalar.Offset),
		map2("ordinal", kInt, kInt, kInt, scalar.Ordinal),
		// Without the position there is no element: SAFE_OFFSET is the twin of OFFSET.
		alias("bq_safe_offset", "bqs_offset", map2("offset", kInt, kInt, kInt, scalar.Offset)),
		alias("bq_safe_ordinal", "bqs_ordinal", map2("ordinal", kInt, kInt, kInt, scalar.Ordinal)),
		lists("generate_array", []native.Type{native.Int64, native.Int64, native.Int64}, kInt, func(a []native.Vector, i int) ([]int64, error) {
			return scalar.GenerateArray(kInt.get(&a[0], i), kInt.get(&a[1], i), kInt.get(&a[2], i))
		}),
		lists("generate_array", []native.Type{native.Float64, native.Float64, native.Float64}, kFloat, func(a []native.Vector, i int) ([]float64, error) {
			return scalar.GenerateFloats(kFloat.get(&a[0], i), kFloat.get(&a[1], i), kFloat.get(&a[2], i))
		}),
		lists("generate_date_array", []native.Type{native.Date, native.Date, native.Int64, native.Varchar}, kDate, func(a []native.Vector, i int) ([]int32, error) {
			return scalar.GenerateDates(kDate.get(&a[0], i), kDate.get(&a[1], i), kInt.get(&a[2], i), kText.get(&a[3], i))
		}),
		lists("generate_timestamp_array", []native.Type{native.Timestamp, native.Timestamp, native.Int64, native.Varchar}, kTimestamp, func(a []native.Vector, i int) ([]int64, error) {
			return scalar.GenerateTimestamps(kTimestamp.get(&a[0], i), kTimestamp.get(&a[1], i), kInt.get(&a[2], i), kText.get(&a[3], i))
		}),
	)
}

// alias is a function of another name.
func alias(name, of string, all []native.Function) []native.Function {
	for _, f := range all {
		if f.Name == of {
			f.Name = name
			return []native.Function{f}
		}
	}
	panic("duckdb: no function " + of)
}

func civilCasts() []native.Function {
	return slices.Concat(
		map1("date", kText, kDate, scalar.TextToDate),
		map1("time", kText, kTime, scalar.TextToTime),
		map1("datetime", kText, kTimestamp, scalar.TextToDateTime),
		map2("timestamp", kText, kText, kTimestamp, scalar.TextToTimestamp),
		map1("time_string", kTime, kText, scalar.TimeText),
		map1("datetime_string", kTimestamp, kText, scalar.DateTimeText),
		map2("timestamp_string", kTimestamp, kText, kText, scalar.TimestampText),
		map3("make_date", kInt, kInt, kInt, kDate, scalar.MakeDate),
		map3("make_time", kInt, kInt, kInt, kTime, scalar.MakeTime),
		makeDateTime(),
		map2("local", kTimestamp, kText, kTimestamp, scalar.Local),
		map2("instant", kTimestamp, kText, kTimestamp, scalar.Instant),
		map2("from_unix", kInt, kInt, kTimestamp, scalar.FromUnix),
		map2("interval", kInt, kText, kSpan, scalar.MakeInterval),
		map3("interval_parts", kInt, kInt, kInt, kSpan, scalar.IntervalParts),
		map2("interval_text", kText, kText, kSpan, scalar.TextToInterval),
	)
}

func makeDateTime() []native.Function {
	params := slices.Repeat([]native.Type{native.Int64}, 6)
	return twins("make_datetime", params, native.Timestamp, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(a []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, err := scalar.MakeDateTime(kInt.get(&a[0], i), kInt.get(&a[1], i), kInt.get(&a[2], i),
					kInt.get(&a[3], i), kInt.get(&a[4], i), kInt.get(&a[5], i))
				return outcome(kTimestamp, out, i, v, true, err, safe)
			})
		}
	})
}

func civilArithmetic() []native.Function {
	return slices.Concat(
		map3("date_add", kDate, kInt, kText, kDate, scalar.DateAdd),
		map2("civil_add", kTimestamp, kSpan, kTimestamp, scalar.CivilAdd),
		map2("instant_add", kTimestamp, kSpan, kTimestamp, scalar.InstantAdd),
		map2("time_add", kTime, kSpan, kTime, scalar.TimeAdd),
		map3("diff", kTimestamp, kTimestamp, kText, kInt, scalar.Diff),
		map3("span_diff", kTimestamp, kTimestamp, kText, kInt, scalar.SpanDiff),
		map3("truncate", kTimestamp, kText, kText, kTimestamp, scalar.Truncate),
		map2("last_day", kTimestamp, kText, kTimestamp, scalar.LastDay),
		map2("extract", kText, kTimestamp, kInt, scalar.Extract),
		map2("extract_date", kText, kTimestamp, kInt, scalar.ExtractDate),
		map2("extract_time", kText, kTimestamp, kInt, scalar.ExtractTime),
		map2("extract_interval", kText, kSpan, kInt, scalar.ExtractInterval),
	)
}

func civilFormats() []native.Function {
	return slices.Concat(
		map3("strftime", kText, kTimestamp, kText, kText, scalar.Strftime),
		map4("strptime", kText, kText, kText, kText, kTimestamp, whole(scalar.Strptime)),
	)
}

func jsons() []native.Function {
	list := func(f func(string) ([]string, error)) func([]native.Vector, int) ([]string, error) {
		return func(args []native.Vector, i int) ([]string, error) { return f(kText.get(&args[0], i)) }
	}
	return slices.Concat(
		map1("parse_json", kText, kText, scalar.ParseJSON),
		map1("json_type", kText, kText, scalar.JSONType),
		lists("json_elements", []native.Type{native.Varchar}, kText, list(scalar.JSONElements)),
		lists("json_strings", []native.Type{native.Varchar}, kText, list(scalar.JSONStrings)),
		lists("json_keys", []native.Type{native.Varchar}, kText, list(scalar.JSONKeys)),
		map1("json_to_string", kText, kText, scalar.JSONToString),
		map1("json_to_bool", kText, kBool, scalar.JSONToBool),
		map1("json_to_int64", kText, kInt, scalar.JSONToInt),
		map1("json_to_float64", kText, kFloat, scalar.JSONToFloat),
		maybe1("json_lax_string", kText, kText, scalar.LaxString),
		maybe1("json_lax_int64", kText, kInt, scalar.LaxInt),
		maybe1("json_lax_float64", kText, kFloat, scalar.LaxFloat),
		maybe1("json_lax_bool", kText, kBool, scalar.LaxBool),
	)
}

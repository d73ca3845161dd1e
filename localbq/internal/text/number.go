package text

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
)

// AppendFloat writes a FLOAT64 as rows of the REST API do, which is how Java prints a double: 1.0, 0.001, 1.0E10, NaN,
// -Infinity (seen in recorded answers of jobs.query; inferred for the borders 1e-3 and 1e7).
func AppendFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	if a := math.Abs(v); a == 0 || a >= 1e-3 && a < 1e7 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
		if !bytes.ContainsRune(dst[start:], '.') {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	var digits [32]byte
	mantissa, exponent, _ := bytes.Cut(strconv.AppendFloat(digits[:0], v, 'e', -1, 64), []byte("e"))
	dst = append(dst, mantissa...)
	if !bytes.ContainsRune(mantissa, '.') {
		dst = append(dst, ".0"...)
	}
	power, _ := strconv.Atoi(string(exponent)) // written by AppendFloat
	return strconv.AppendInt(append(dst, 'E'), int64(power), 10)
}

// AppendSQLFloat writes a FLOAT64 in the form of casts to STRING: 1, 0.001, 1e+20, NaN, inf
// (GoogleSQL reference, "Conversion rules", FLOAT64 to STRING).
func AppendSQLFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "nan"...)
	case math.IsInf(v, 1):
		return append(dst, "inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-inf"...)
	case v == 0:
		return append(dst, '0')
	}
	if a := math.Abs(v); a >= 1e-4 && a < 1e15 {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'e', -1, 64)
}

// AppendDecimal writes unscaled × 10^-scale without trailing zeros, and without a point where nothing is behind it.
func AppendDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	digits := unscaled.Append(nil, 10)
	if digits[0] == '-' {
		dst = append(dst, '-')
		digits = digits[1:]
	}
	return appendPoint(dst, digits, scale)
}

// AppendDecimal64 is AppendDecimal for what fits 64 bits.
func AppendDecimal64(dst []byte, unscaled int64, scale int) []byte {
	var buffer [20]byte
	digits := strconv.AppendInt(buffer[:0], unscaled, 10)
	if digits[0] == '-' {
		dst = append(dst, '-')
		digits = digits[1:]
	}
	return appendPoint(dst, digits, scale)
}

func appendPoint(dst, digits []byte, scale int) []byte {
	if n := len(digits) - scale; n > 0 {
		dst = append(dst, digits[:n]...)
		digits = digits[n:]
	} else {
		dst = append(dst, '0')
		digits = append(bytes.Repeat([]byte("0"), -n), digits...)
	}
	digits = bytes.TrimRight(digits, "0")
	if len(digits) == 0 {
		return dst
	}
	return append(append(dst, '.'), digits...)
}

// AppendInterval writes an INTERVAL as Y-M D H:M:S[.F], each of the three parts with its own sign.
func AppendInterval(dst []byte, months, days, micros int64) []byte {
	if months < 0 {
		dst = append(dst, '-')
		months = -months
	}
	dst = append(appendInt(dst, months/12), '-')
	dst = append(appendInt(dst, months%12), ' ')
	dst = append(strconv.AppendInt(dst, days, 10), ' ')
	if micros < 0 {
		dst = append(dst, '-')
		micros = -micros
	}
	seconds := micros / microsPerSecond
	dst = append(appendInt(dst, seconds/3600), ':')
	dst = append(appendInt(dst, seconds/60%60), ':')
	dst = appendInt(dst, seconds%60)
	fraction := micros % microsPerSecond
	if fraction == 0 {
		return dst
	}
	return bytes.TrimRight(appendDigits(append(dst, '.'), fraction, 6), "0")
}

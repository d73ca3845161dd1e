package scalar

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

func trimSpace(s string) string { return strings.TrimFunc(s, unicode.IsSpace) }

// Substr is the n characters from position on, which counts from 1, or from the end below 0; 0 is 1.
func Substr(s string, position, n int64) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("Third argument in SUBSTR() cannot be negative")
	}
	length := int64(utf8.RuneCountInString(s))
	from, to := window(length, position, n)
	start := runeOffset(s, from)
	return s[start : start+runeOffset(s[start:], to-from)], nil
}

// SubstrBytes is Substr for bytes.
func SubstrBytes(b []byte, position, n int64) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("Third argument in SUBSTR() cannot be negative")
	}
	from, to := window(int64(len(b)), position, n)
	return b[from:to], nil
}

func window(length, position, n int64) (from, to int64) {
	switch {
	case position > 0:
		from = min(position-1, length)
	case position < 0:
		from = max(length+position, 0)
	}
	return from, from + min(n, length-from)
}

// All is the length that takes everything.
const All = math.MaxInt64

// runeOffset is where the n-th character begins.
func runeOffset(s string, n int64) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

func Left(s string, n int64) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("Second argument in LEFT() cannot be negative")
	}
	return s[:runeOffset(s, n)], nil
}

func Right(s string, n int64) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("Second argument in RIGHT() cannot be negative")
	}
	return s[runeOffset(s, max(0, int64(utf8.RuneCountInString(s))-n)):], nil
}

func Lower(s string) (string, error) { return strings.ToLower(s), nil }
func Upper(s string) (string, error) { return strings.ToUpper(s), nil }

// initcapDelimiters are where words begin (GoogleSQL reference, INITCAP).
const initcapDelimiters = " \t\n\v\f\r[](){}/|<>!?@\"^#$&~_,.:;*%+-"

func Initcap(s string) (string, error) {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = strings.ContainsRune(initcapDelimiters, r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s), nil
}

func Trim(s string) (string, error)  { return strings.TrimFunc(s, unicode.IsSpace), nil }
func LTrim(s string) (string, error) { return strings.TrimLeftFunc(s, unicode.IsSpace), nil }
func RTrim(s string) (string, error) { return strings.TrimRightFunc(s, unicode.IsSpace), nil }

func TrimOf(s, set string) (string, error)  { return strings.Trim(s, set), nil }
func LTrimOf(s, set string) (string, error) { return strings.TrimLeft(s, set), nil }
func RTrimOf(s, set string) (string, error) { return strings.TrimRight(s, set), nil }

// maxText bounds what LPAD and REPEAT make (BigQuery limits a value to 10 MB in a row; this keeps a mistake from eating the
// memory).
const maxText = 64 << 20

func pad(name, s string, n int64, with string) (fill string, cut string, err error) {
	switch {
	case n < 0:
		return "", "", fmt.Errorf("Second argument (output size) for %s cannot be negative", name)
	case with == "":
		return "", "", fmt.Errorf("Third argument (pad pattern) for %s cannot be empty", name)
	case n > maxText:
		return "", "", fmt.Errorf("Output of %s exceeds max allowed output size of %d bytes", name, maxText)
	}
	length := int64(utf8.RuneCountInString(s))
	if n <= length {
		return "", s[:runeOffset(s, n)], nil
	}
	missing := n - length
	times := missing/int64(utf8.RuneCountInString(with)) + 1
	repeated := strings.Repeat(with, int(times))
	return repeated[:runeOffset(repeated, missing)], s, nil
}

func LPad(s string, n int64, with string) (string, error) {
	fill, cut, err := pad("LPAD", s, n, with)
	return fill + cut, err
}

func RPad(s string, n int64, with string) (string, error) {
	fill, cut, err := pad("RPAD", s, n, with)
	return cut + fill, err
}

func Repeat(s string, n int64) (string, error) {
	switch {
	case n < 0:
		return "", fmt.Errorf("Second argument in REPEAT() cannot be negative")
	case n > 0 && int64(len(s)) > maxText/n:
		return "", fmt.Errorf("Output of REPEAT exceeds max allowed output size of %d bytes", maxText)
	}
	return strings.Repeat(s, int(n)), nil
}

// Replace leaves s alone where from is empty.
func Replace(s, from, to string) (string, error) {
	if from == "" {
		return s, nil
	}
	return strings.ReplaceAll(s, from, to), nil
}

func Reverse(s string) (string, error) {
	runes := []rune(s)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes), nil
}

// Instr is where the n-th occurrence of part begins, from position on, or from the end backwards below 0; 0 where there is
// none.
func Instr(s, part string, position, n int64) (int64, error) {
	if position == 0 || n <= 0 {
		return 0, fmt.Errorf("Invalid position or occurrence in INSTR: %d, %d", position, n)
	}
	runes, want := []rune(s), []rune(part)
	at, step := position-1, int64(1)
	if position < 0 {
		at, step = int64(len(runes))+position, -1
	}
	for ; at >= 0 && at <= int64(len(runes)); at += step {
		if at+int64(len(want)) <= int64(len(runes)) && string(runes[at:at+int64(len(want))]) == part {
			if n--; n == 0 {
				return at + 1, nil
			}
		}
	}
	return 0, nil
}

func ASCII(s string) (int64, error) {
	switch {
	case s == "":
		return 0, nil
	case s[0] >= 0x80:
		return 0, fmt.Errorf("Non-ASCII character at the start of the argument of ASCII()")
	}
	return int64(s[0]), nil
}

func Unicode(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	r, _ := utf8.DecodeRuneInString(s)
	return int64(r), nil
}

func Chr(n int64) (string, error) {
	if n < 0 || n > unicode.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", fmt.Errorf("Invalid codepoint %d", n)
	}
	return string(rune(n)), nil
}

func FromBase64(s string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("Failed to decode invalid base64 string")
	}
	return b, nil
}

// FromHex takes an odd number of digits as having a 0 before them.
func FromHex(s string) ([]byte, error) {
	if len(s)%2 == 1 {
		s = "0" + s
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("Failed to decode invalid hexadecimal string due to character at position: %w", err)
	}
	return b, nil
}

func UTF8(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", fmt.Errorf("Invalid cast of bytes to UTF8 string")
	}
	return string(b), nil
}

// UTF8Lossy puts the replacement character for what is not UTF-8.
func UTF8Lossy(b []byte) (string, error) { return strings.ToValidUTF8(string(b), "\uFFFD"), nil }

func SHA512(b []byte) ([]byte, error) {
	sum := sha512.Sum512(b)
	return sum[:], nil
}

func TextToBool(s string) (bool, error) {
	switch strings.ToLower(trimSpace(s)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("Bad bool value: %s", s)
}

// Offset makes a position from 0 one from 1, and refuses one that is not there.
func Offset(i, length int64) (int64, error) {
	switch {
	case i < 0:
		return 0, fmt.Errorf("Array index %d is out of bounds (underflow)", i)
	case i >= length:
		return 0, fmt.Errorf("Array index %d is out of bounds (overflow)", i)
	}
	return i + 1, nil
}

func Ordinal(i, length int64) (int64, error) {
	switch {
	case i < 1:
		return 0, fmt.Errorf("Array index %d is out of bounds (underflow)", i)
	case i > length:
		return 0, fmt.Errorf("Array index %d is out of bounds (overflow)", i)
	}
	return i, nil
}

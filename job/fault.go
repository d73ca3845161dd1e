package job

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/millrace-dev/millrace/internal/nearest"
)

// Fault is one thing that is wrong in a job file.
type Fault struct {
	File   string // as it was named, or "--set" for a value from the command line
	Line   int    // 1-based
	Column int    // 1-based, in characters
	Key    string // dotted, with indexes: "sink.bigquery.create.cluster[1]"
	Msg    string // what is wrong, what was expected, what to do
}

func (f Fault) String() string {
	s := f.File
	if f.Line > 0 {
		s += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	if f.Key != "" {
		s += ": " + legible(f.Key)
	}
	return s + ": " + short(f.Msg, longestMsg)
}

// A file that is no job file has keys and values of any length, and of any characters.
const longestKey, longestMsg = 100, 1000

func legible(key string) string {
	if key = short(key, longestKey); strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return strconv.Quote(key)
	}
	return key
}

func short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// InvalidError is every fault of a job file, in the order of the lines.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// didYouMean is the end of a message about an unknown word.
func didYouMean(word string, known []string) string {
	if n := nearest.To(word, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return "; expected one of " + strings.Join(known, ", ")
}

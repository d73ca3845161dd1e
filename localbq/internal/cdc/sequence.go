package cdc

import (
	"cmp"
	"fmt"
	"strings"
)

// Sequence is a change sequence number, or none: the zero value. Comparable.
type Sequence struct {
	given    bool
	sections [maxSections]uint64
}

const (
	maxSections = 4
	maxDigits   = 16
)

// ParseSequence reads one to four sections of one to sixteen hexadecimal digits with "/" between them. A missing section
// counts as zero.
func ParseSequence(text string) (Sequence, error) {
	s := Sequence{given: true}
	if text == "" {
		return s, fmt.Errorf("Invalid %s '': it must not be empty.", SequenceColumn)
	}
	sections := strings.SplitN(text, "/", maxSections+1)
	if len(sections) > maxSections {
		return s, fmt.Errorf("Invalid %s %q: it has more than %d sections.", SequenceColumn, shown(text), maxSections)
	}
	for i, section := range sections {
		v, ok := parseSection(section)
		if !ok {
			return s, fmt.Errorf("Invalid %s %q: a section must have 1 to %d hexadecimal digits.", SequenceColumn, shown(text), maxDigits)
		}
		s.sections[i] = v
	}
	return s, nil
}

// shown is a text of any length as a message quotes it.
func shown(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func parseSection(text string) (uint64, bool) {
	if len(text) == 0 || len(text) > maxDigits {
		return 0, false
	}
	v := uint64(0)
	for i := range len(text) {
		digit := uint64(0)
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digit = uint64(c - '0')
		case 'a' <= c && c <= 'f':
			digit = uint64(c-'a') + 10
		case 'A' <= c && c <= 'F':
			digit = uint64(c-'A') + 10
		default:
			return 0, false
		}
		v = v<<4 | digit
	}
	return v, true
}

// Given reports whether there is a number.
func (s Sequence) Given() bool { return s.given }

// Compare orders by sections from the left, as unsigned numbers; no number comes before every number.
func (s Sequence) Compare(o Sequence) int {
	switch {
	case s.given != o.given && o.given:
		return -1
	case s.given != o.given:
		return 1
	}
	for i := range s.sections {
		if c := cmp.Compare(s.sections[i], o.sections[i]); c != 0 {
			return c
		}
	}
	return 0
}

// String is the number in capital digits with all sections; "" for none.
func (s Sequence) String() string {
	if !s.given {
		return ""
	}
	return fmt.Sprintf("%X/%X/%X/%X", s.sections[0], s.sections[1], s.sections[2], s.sections[3])
}

package scalar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Strftime writes a time by a format (GoogleSQL reference, "Format elements for date and time parts"), by the clock of a
// zone.
func Strftime(format string, micros int64, name string) (string, error) {
	z, err := zone(name)
	if err != nil {
		return "", err
	}
	t := at(micros).In(z)
	var out strings.Builder
	for rest := format; rest != ""; {
		i := strings.IndexByte(rest, '%')
		if i < 0 || i+1 == len(rest) {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:i])
		n, text := element(rest[i+1:], t)
		if n == 0 {
			return "", fmt.Errorf("Invalid format element in %q: %%%s", format, rest[i+1:i+2])
		}
		out.WriteString(text)
		rest = rest[i+1+n:]
	}
	return out.String(), nil
}

// element is what the element at the start of s means for t, and its length without the per cent sign.
func element(s string, t time.Time) (int, string) {
	if s[0] == 'E' {
		return extended(s, t)
	}
	if layout, ok := layouts[s[0]]; ok {
		return 1, t.Format(layout)
	}
	_, offset := t.Zone()
	isoYear, isoWeek := t.ISOWeek()
	switch s[0] {
	case '%':
		return 1, "%"
	case 'n':
		return 1, "\n"
	case 't':
		return 1, "\t"
	case 'C':
		return 1, pad2(int64(t.Year() / 100))
	case 'e':
		return 1, fmt.Sprintf("%2d", t.Day())
	case 'G':
		return 1, fmt.Sprintf("%04d", isoYear)
	case 'g':
		return 1, pad2(int64(isoYear % 100))
	case 'j':
		return 1, fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return 1, fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return 1, fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'P':
		return 1, strings.ToLower(t.Format("PM"))
	case 'Q':
		return 1, strconv.Itoa((int(t.Month())-1)/3 + 1)
	case 's':
		return 1, strconv.FormatInt(t.Unix(), 10)
	case 'U':
		return 1, pad2(weekNumber(t, 0))
	case 'u':
		return 1, strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'V':
		return 1, pad2(int64(isoWeek))
	case 'W':
		return 1, pad2(weekNumber(t, 1))
	case 'w':
		return 1, strconv.Itoa(int(t.Weekday()))
	case 'Z':
		return 1, zoneName(t, offset)
	case 'z':
		return 1, strings.Replace(offsetText(int64(offset), true), ":", "", 1)
	}
	return 0, ""
}

// layouts are the elements that Go's own formats know.
var layouts = map[byte]string{
	'A': "Monday", 'a': "Mon", 'B': "January", 'b': "Jan", 'h': "Jan", 'c': "Mon Jan _2 15:04:05 2006", 'D': "01/02/06",
	'd': "02", 'F': "2006-01-02", 'H': "15", 'I': "03", 'M': "04", 'm': "01", 'p': "PM", 'R': "15:04", 'r': "03:04:05 PM",
	'S': "05", 'T': "15:04:05", 'X': "15:04:05", 'x': "01/02/06", 'Y': "2006", 'y': "06",
}

func pad2(n int64) string { return fmt.Sprintf("%02d", n) }

// zoneName is UTC, or UTC and an offset.
func zoneName(t time.Time, offset int) string {
	if offset == 0 {
		return "UTC"
	}
	return "UTC" + strings.TrimSuffix(offsetText(int64(offset), false), ":00")
}

// extended are %Ez, %E4Y, %E*S and %E0S to %E6S.
func extended(s string, t time.Time) (int, string) {
	switch {
	case strings.HasPrefix(s, "Ez"):
		_, offset := t.Zone()
		return 2, offsetText(int64(offset), true)
	case strings.HasPrefix(s, "E4Y"):
		return 3, fmt.Sprintf("%04d", t.Year())
	case strings.HasPrefix(s, "E*S"):
		text := t.Format("05.000000")
		return 3, strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	case len(s) > 2 && s[1] >= '0' && s[1] <= '9' && s[2] == 'S':
		text := t.Format("05.000000")
		if s[1] == '0' {
			return 3, text[:2]
		}
		return 3, text[:3+min(6, int(s[1]-'0'))]
	}
	return 0, ""
}

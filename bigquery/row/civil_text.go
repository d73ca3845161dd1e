package row

import "time"

// Text is what the parsing functions read.
type Text interface{ ~string | ~[]byte }

var (
	errDateText     = &ValueError{KindType, "expected a date as YYYY-MM-DD"}
	errDateMissing  = &ValueError{KindRange, "expected a date that is in the calendar, in the years 1 to 9999"}
	errTimeText     = &ValueError{KindType, "expected a time as HH:MM:SS, with up to 6 fractional digits"}
	errTimeMissing  = &ValueError{KindRange, "expected a time of day: hours to 23, minutes and seconds to 59"}
	errDateTimeText = &ValueError{KindType, "expected a date and time as YYYY-MM-DDTHH:MM:SS, with up to 6 fractional digits"}
	errInstantText  = &ValueError{KindType, "expected a timestamp as YYYY-MM-DDTHH:MM:SS and a zone such as Z or +02:00"}
	errZone         = &ValueError{KindType, "expected a zone as Z, +HH:MM up to 14:00, or a name of the IANA database"}
	errTooFine      = &ValueError{KindScale, "expected no digits below the microsecond"}
)

// ParseDate reads YYYY-[M]M-[D]D and returns days since 1970-01-01.
func ParseDate[S Text](s S) (days int64, err error) {
	days, n, err := dateAt(s, '-', '-', errDateText)
	if err == nil && n != len(s) {
		err = errDateText
	}
	return days, err
}

// ParseTime reads HH:MM[:SS[.f]] and returns microseconds since midnight. Up to nine fractional digits are read, of which
// those below the microsecond must be zero.
func ParseTime[S Text](s S) (micros int64, err error) {
	return clockAt(s, 0, clock{hour: 2, minute: 2, second: 2, fault: errTimeText})
}

// ParseDateTime reads a date as ParseDate does, then nothing, or "T", "t" or a space and [H]H:[M]M[:[S]S[.f]]. It returns
// microseconds since 1970-01-01T00:00:00.
func ParseDateTime[S Text](s S) (micros int64, err error) { return dateTime(s, false) }

// CutDateTime reads what ParseDateTime does, and cuts off digits below the microsecond, towards the past.
func CutDateTime[S Text](s S) (micros int64, err error) { return dateTime(s, true) }

func dateTime[S Text](s S, cut bool) (micros int64, err error) {
	days, n, err := dateAt(s, '-', '-', errDateTimeText)
	if err != nil {
		return 0, err
	}
	if n == len(s) {
		return days * microsPerDay, nil
	}
	if !separator(s[n]) {
		return 0, errDateTimeText
	}
	micros, err = clockAt(s, n+1, clock{hour: 1, minute: 1, second: 1, cut: cut, fault: errDateTimeText})
	return days*microsPerDay + micros, err
}

func separator(c byte) bool { return c == 'T' || c == 't' || c == ' ' }

// ParseTimestamp reads a date with "-" or "/" between its parts, "T", "t" or a space, [H]H:MM[:SS[.f]], and a zone,
// possibly behind a space: Z, UTC, GMT, ±HH, ±HH:MM, ±HHMM or an IANA name; without one it is UTC. It returns
// microseconds since 1970-01-01T00:00:00Z. Digits below the microsecond are cut off, towards the past.
func ParseTimestamp[S Text](s S) (micros int64, err error) {
	if micros, ok := plainInstant(s); ok {
		return micros, nil
	}
	days, n, err := dateAt(s, '-', '/', errInstantText)
	if err != nil {
		return 0, err
	}
	if n == len(s) || !separator(s[n]) {
		return 0, errInstantText
	}
	end := n + 1
	for end < len(s) && (s[end] >= '0' && s[end] <= ':' || s[end] == '.') {
		end++
	}
	micros, err = clockAt(s[:end], n+1, clock{hour: 1, minute: 2, second: 2, cut: true, fault: errInstantText})
	if err != nil {
		return 0, err
	}
	return inZone(days*microsPerDay+micros, s[end:])
}

// plainInstant reads the spelling that most programs write, YYYY-MM-DDTHH:MM:SS, nothing or six digits of a fraction, and
// Z, in a fifth of the time. Everything else, and everything that is wrong, it leaves to the general way.
func plainInstant[S Text](s S) (micros int64, ok bool) {
	if len(s) != 20 && len(s) != 27 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[len(s)-1] != 'Z' {
		return 0, false
	}
	// Each pair of digits leaves its sign bit in bad when one of them is none.
	century, bad := pair(s, 0)
	year, b := pair(s, 2)
	bad |= b
	month, b := pair(s, 5)
	bad |= b
	day, b := pair(s, 8)
	bad |= b
	hour, b := pair(s, 11)
	bad |= b
	minute, b := pair(s, 14)
	bad |= b
	second, b := pair(s, 17)
	bad |= b
	fraction := 0
	if len(s) == 27 {
		high, b := pair(s, 20)
		bad |= b
		mid, b := pair(s, 22)
		bad |= b
		low, b := pair(s, 24)
		bad |= b
		if s[19] != '.' {
			return 0, false
		}
		fraction = (high*100+mid)*100 + low
	}
	days, ok := Days(century*100+year, month, day)
	if bad < 0 || !ok || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return days*microsPerDay + int64((hour*60+minute)*60+second)*microsPerSecond + int64(fraction), true
}

// pair is the number of two digits at i; bad is negative when one of them is no digit.
func pair[S Text](s S, i int) (v, bad int) {
	high, low := int(s[i]-'0'), int(s[i+1]-'0')
	return high*10 + low, (9 - high) | (9 - low)
}

// dateAt reads a date at the start of s whose parts stand between one of two separators, and returns where it ends.
func dateAt[S Text](s S, sep, other byte, fault *ValueError) (days int64, end int, err error) {
	if len(s) < 8 || s[4] != sep && s[4] != other {
		return 0, 0, fault
	}
	sep = s[4]
	year, n := number(s, 0, 4, 4)
	if n != 4 {
		return 0, 0, fault
	}
	month, n := number(s, 5, 1, 2)
	if n < 0 || n >= len(s) || s[n] != sep {
		return 0, 0, fault
	}
	day, n := number(s, n+1, 1, 2)
	if n < 0 {
		return 0, 0, fault
	}
	days, ok := Days(year, month, day)
	if !ok {
		return 0, 0, errDateMissing
	}
	return days, n, nil
}

// number reads least to most digits at i. The end is -1 when there are fewer; one more digit is left for the caller to
// trip over.
func number[S Text](s S, i, least, most int) (v, end int) {
	end = i
	for end < len(s) && end-i < most && s[end]-'0' <= 9 {
		v = v*10 + int(s[end]-'0')
		end++
	}
	if end-i < least {
		return 0, -1
	}
	return v, end
}

// clock says how a time of day is written: the least number of digits of each part, and whether digits below the
// microsecond are cut off or have to be zero.
type clock struct {
	hour, minute, second int
	cut                  bool
	fault                *ValueError
}

// clockAt reads HH:MM[:SS[.f]] at i, to the end of s.
func clockAt[S Text](s S, i int, c clock) (micros int64, err error) {
	hour, n := number(s, i, c.hour, 2)
	if n < 0 || n >= len(s) || s[n] != ':' {
		return 0, c.fault
	}
	minute, n := number(s, n+1, c.minute, 2)
	if n < 0 {
		return 0, c.fault
	}
	second := 0
	var fraction int64
	if n < len(s) {
		if s[n] != ':' {
			return 0, c.fault
		}
		if second, n = number(s, n+1, c.second, 2); n < 0 {
			return 0, c.fault
		}
		if fraction, err = fractionAt(s, n, c); err != nil {
			return 0, err
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		return 0, errTimeMissing
	}
	return int64((hour*60+minute)*60+second)*microsPerSecond + fraction, nil
}

// fractionAt reads nothing, or a point and one to nine digits, to the end of s. It answers microseconds.
func fractionAt[S Text](s S, i int, c clock) (micros int64, err error) {
	if i == len(s) {
		return 0, nil
	}
	digits := len(s) - i - 1
	if s[i] != '.' || digits < 1 || digits > 9 {
		return 0, c.fault
	}
	nanos, end := number(s, i+1, digits, 9)
	if end != len(s) {
		return 0, c.fault
	}
	for range 9 - digits {
		nanos *= 10
	}
	if nanos%1000 != 0 && !c.cut {
		return 0, errTooFine
	}
	return int64(nanos / 1000), nil
}

// inZone turns the local time micros into an instant.
func inZone[S Text](micros int64, zone S) (int64, error) {
	if len(zone) > 1 && zone[0] == ' ' {
		zone = zone[1:]
	}
	var offset int64
	switch {
	case len(zone) == 0 || len(zone) == 1 && (zone[0] == 'Z' || zone[0] == 'z'):
	case zone[0] == '+' || zone[0] == '-':
		seconds, ok := zoneOffset(zone)
		if !ok {
			return 0, errZone
		}
		offset = seconds
	default:
		seconds, ok := namedZone(micros, zone)
		if !ok {
			return 0, errZone
		}
		offset = seconds
	}
	micros -= offset * microsPerSecond
	return micros, CheckMicros(micros)
}

// zoneOffset reads ±HH, ±HH:MM or ±HHMM as seconds. GoogleSQL ends at 14 hours.
func zoneOffset[S Text](zone S) (seconds int64, ok bool) {
	hour, n := number(zone, 1, 2, 2)
	minute := 0
	switch {
	case n < 0:
		return 0, false
	case n < len(zone):
		if zone[n] == ':' {
			n++
		}
		if minute, n = number(zone, n, 2, 2); n != len(zone) {
			return 0, false
		}
	}
	seconds = int64(hour*60+minute) * 60
	if minute > 59 || seconds > 14*3600 {
		return 0, false
	}
	if zone[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// namedZone is the offset of an IANA zone at that local time. Times that a change of the clock skips or repeats are read
// as package time reads them.
func namedZone[S Text](micros int64, zone S) (seconds int64, ok bool) {
	loc := findZone(&zones, zone)
	if loc == nil {
		return 0, false
	}
	days, rest := splitDays(micros)
	year, month, day := Date(days)
	local := time.Date(year, time.Month(month), day, 0, 0, int(rest/microsPerSecond), 0, loc)
	_, offset := local.Zone()
	return int64(offset), true
}

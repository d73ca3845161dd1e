package row

import "strconv"

// AppendDate appends YYYY-MM-DD for days since 1970-01-01, which must be MinDays to MaxDays.
func AppendDate(buf []byte, days int64) []byte {
	year, month, day := Date(days)
	buf = appendDigits(buf, year, 4)
	buf = append(buf, '-')
	buf = appendDigits(buf, month, 2)
	buf = append(buf, '-')
	return appendDigits(buf, day, 2)
}

// AppendTime appends HH:MM:SS for microseconds since midnight, and the fraction, if any, in three digits or
// six.
func AppendTime(buf []byte, micros int64) []byte {
	seconds := int(micros / microsPerSecond)
	buf = appendDigits(buf, seconds/3600, 2)
	buf = append(buf, ':')
	buf = appendDigits(buf, seconds/60%60, 2)
	buf = append(buf, ':')
	buf = appendDigits(buf, seconds%60, 2)
	return appendFraction(buf, int(micros%microsPerSecond))
}

// AppendDateTime appends YYYY-MM-DDTHH:MM:SS and the fraction for microseconds since 1970-01-01T00:00:00, which must be
// MinMicros to MaxMicros.
func AppendDateTime(buf []byte, micros int64) []byte {
	days, rest := splitDays(micros)
	buf = AppendDate(buf, days)
	buf = append(buf, 'T')
	return AppendTime(buf, rest)
}

// AppendTimestamp appends the instant as RFC 3339 writes it, in UTC, with "Z".
func AppendTimestamp(buf []byte, micros int64) []byte {
	return append(AppendDateTime(buf, micros), 'Z')
}

// AppendInterval appends an INTERVAL as Y-M D H:M:S[.F], each part with its own sign, as BigQuery prints it.
func AppendInterval(buf []byte, months, days, micros int64) []byte {
	if months < 0 {
		buf = append(buf, '-')
		months = -months
	}
	buf = strconv.AppendInt(buf, months/12, 10)
	buf = append(buf, '-')
	buf = strconv.AppendInt(buf, months%12, 10)
	buf = append(buf, ' ')
	buf = strconv.AppendInt(buf, days, 10)
	buf = append(buf, ' ')
	if micros < 0 {
		buf = append(buf, '-')
		micros = -micros
	}
	seconds := micros / microsPerSecond
	buf = strconv.AppendInt(buf, seconds/3600, 10)
	buf = append(buf, ':')
	buf = strconv.AppendInt(buf, seconds/60%60, 10)
	buf = append(buf, ':')
	buf = strconv.AppendInt(buf, seconds%60, 10)
	return appendFraction(buf, int(micros%microsPerSecond))
}

func appendDigits(buf []byte, v, width int) []byte {
	switch width {
	case 2:
		return append(buf, byte('0'+v/10), byte('0'+v%10))
	case 3:
		return append(buf, byte('0'+v/100), byte('0'+v/10%10), byte('0'+v%10))
	case 4:
		return append(buf, byte('0'+v/1000), byte('0'+v/100%10), byte('0'+v/10%10), byte('0'+v%10))
	}
	return append(buf, byte('0'+v/100_000), byte('0'+v/10_000%10), byte('0'+v/1000%10), byte('0'+v/100%10),
		byte('0'+v/10%10), byte('0'+v%10))
}

// appendFraction writes milliseconds where they say it all, since most clocks that people copy timestamps from do.
func appendFraction(buf []byte, micros int) []byte {
	switch {
	case micros == 0:
		return buf
	case micros%1000 == 0:
		return appendDigits(append(buf, '.'), micros/1000, 3)
	}
	return appendDigits(append(buf, '.'), micros, 6)
}

package text

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// AppendDate writes days since 1970-01-01 as 2006-01-02. Years are 1 to 9999.
func AppendDate(dst []byte, days int64) []byte {
	year, month, day := civil(days)
	dst = append(appendDigits(dst, year, 4), '-')
	dst = append(appendDigits(dst, month, 2), '-')
	return appendDigits(dst, day, 2)
}

// civil is the calendar date of a day (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
func civil(days int64) (year, month, day int64) {
	z := days + 719_468 // 0000-03-01
	era := z / 146_097
	if z < 0 {
		era = (z - 146_096) / 146_097
	}
	dayOfEra := z - era*146_097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36_524 - dayOfEra/146_096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153 // month, with March as 0
	day = dayOfYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	if month > 12 {
		month -= 12
	}
	year = yearOfEra + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// AppendTime writes microseconds since midnight as 15:04:05, with six digits behind a point where the fraction is not 0.
func AppendTime(dst []byte, micros int64) []byte {
	return appendFraction(appendClock(dst, micros/microsPerSecond), micros%microsPerSecond)
}

// AppendDateTime writes microseconds since 1970-01-01 00:00:00 as a date, separator (T or a space) and a time in the form of
// AppendTime.
func AppendDateTime(dst []byte, micros int64, separator byte) []byte {
	days, rest := splitDay(micros)
	return AppendTime(append(AppendDate(dst, days), separator), rest)
}

// AppendSQLTime is AppendTime in the form of casts to STRING: three or six digits behind the point, as many as it takes.
func AppendSQLTime(dst []byte, micros int64) []byte {
	dst = appendClock(dst, micros/microsPerSecond)
	switch fraction := micros % microsPerSecond; {
	case fraction == 0:
		return dst
	case fraction%1000 == 0:
		return appendDigits(append(dst, '.'), fraction/1000, 3)
	default:
		return appendDigits(append(dst, '.'), fraction, 6)
	}
}

// AppendSQLDateTime writes a DATETIME in the form of casts to STRING.
func AppendSQLDateTime(dst []byte, micros int64) []byte {
	days, rest := splitDay(micros)
	return AppendSQLTime(append(AppendDate(dst, days), ' '), rest)
}

// AppendSeconds writes microseconds as seconds with six digits behind the point.
func AppendSeconds(dst []byte, micros int64) []byte {
	if micros < 0 {
		dst = append(dst, '-')
		micros = -micros
	}
	dst = appendInt(dst, micros/microsPerSecond)
	return appendDigits(append(dst, '.'), micros%microsPerSecond, 6)
}

// splitDay parts microseconds into whole days, rounded down, and what is left.
func splitDay(micros int64) (days, rest int64) {
	days = micros / microsPerDay
	if rest = micros % microsPerDay; rest < 0 {
		days--
		rest += microsPerDay
	}
	return days, rest
}

func appendClock(dst []byte, seconds int64) []byte {
	dst = append(appendDigits(dst, seconds/3600, 2), ':')
	dst = append(appendDigits(dst, seconds/60%60, 2), ':')
	return appendDigits(dst, seconds%60, 2)
}

func appendFraction(dst []byte, micros int64) []byte {
	if micros == 0 {
		return dst
	}
	return appendDigits(append(dst, '.'), micros, 6)
}

// appendDigits writes n with leading zeros to at least width digits. n is not negative.
func appendDigits(dst []byte, n int64, width int) []byte {
	var digits [20]byte
	at := len(digits)
	for n > 0 || at > len(digits)-width {
		at--
		digits[at] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, digits[at:]...)
}

func appendInt(dst []byte, n int64) []byte { return appendDigits(dst, n, 1) }

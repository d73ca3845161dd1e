package row

// Bounds of the civil and absolute time types: years 1 to 9999 (BigQuery documentation, "Data types").
const (
	MinDays   = -719_162
	MaxDays   = 2_932_896
	MinMicros = MinDays * microsPerDay
	MaxMicros = MaxDays*microsPerDay + microsPerDay - 1

	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

var (
	errDateRange     = &ValueError{KindRange, "expected a date from 0001-01-01 to 9999-12-31"}
	errTimeRange     = &ValueError{KindRange, "expected a time from 00:00:00 to 23:59:59.999999"}
	errDateTimeRange = &ValueError{KindRange, "expected a date and time in the years 1 to 9999"}
	errInstantRange  = &ValueError{KindRange, "expected an instant in the years 1 to 9999, UTC"}
	errPacked        = &ValueError{KindDecode, "expected packed civil time: a field is out of range or a bit above them is set"}
)

// Days is the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar. ok is false for dates that
// do not exist and for years other than 1 to 9999.
func Days(year, month, day int) (days int64, ok bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	// Years begin in March, so that the leap day is the last of its year; 400 years are 146,097 days.
	y := int64(year)
	if month <= 2 {
		y--
	}
	era := y / 400
	yearOfEra := y - era*400
	dayOfYear := int64((153*((month+9)%12)+2)/5 + day - 1)
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146_097 + dayOfEra - 719_468, true
}

// Date is the date that many days after 1970-01-01, which must be MinDays to MaxDays.
func Date(days int64) (year, month, day int) {
	z := days + 719_468
	era := z / 146_097
	dayOfEra := z - era*146_097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36_524 - dayOfEra/146_096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	day = int(dayOfYear - (153*shifted+2)/5 + 1)
	month = int(shifted+2)%12 + 1
	year = int(yearOfEra + era*400)
	if month <= 2 {
		year++
	}
	return year, month, day
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// CheckDays, CheckTime, CheckDateTime and CheckMicros say whether a DATE, TIME, DATETIME or TIMESTAMP in the form of
// Value.Int is within the type's range.
func CheckDays(days int64) error { return inRange(days, MinDays, MaxDays, errDateRange) }

func CheckTime(micros int64) error { return inRange(micros, 0, microsPerDay-1, errTimeRange) }

func CheckDateTime(micros int64) error {
	return inRange(micros, MinMicros, MaxMicros, errDateTimeRange)
}

func CheckMicros(micros int64) error {
	return inRange(micros, MinMicros, MaxMicros, errInstantRange)
}

func inRange(v, low, high int64, fault *ValueError) error {
	if v < low || v > high {
		return fault
	}
	return nil
}

// PackTime turns microseconds since midnight into the form of a TIME column: hour<<32 | minute<<26 | second<<20 |
// microsecond. The argument must be within a day.
func PackTime(micros int64) int64 {
	seconds := micros / microsPerSecond
	return seconds/3600<<32 | seconds/60%60<<26 | seconds%60<<20 | micros%microsPerSecond
}

// PackDateTime turns microseconds since 1970-01-01T00:00:00 into the form of a DATETIME column: year<<46 | month<<42 |
// day<<37 | PackTime. The argument must be MinMicros to MaxMicros.
func PackDateTime(micros int64) int64 {
	days, rest := splitDays(micros)
	year, month, day := Date(days)
	return int64(year)<<46 | int64(month)<<42 | int64(day)<<37 | PackTime(rest)
}

// splitDays rounds towards the past, so that the rest is within a day.
func splitDays(micros int64) (days, rest int64) {
	days, rest = micros/microsPerDay, micros%microsPerDay
	if rest < 0 {
		return days - 1, rest + microsPerDay
	}
	return days, rest
}

// UnpackTime is the inverse of PackTime. It refuses set bits above the hour and fields no clock shows.
func UnpackTime(packed int64) (micros int64, err error) {
	hour, minute, second, micro := packed>>32, packed>>26&63, packed>>20&63, packed&(1<<20-1)
	if hour < 0 || hour > 23 || minute > 59 || second > 59 || micro >= microsPerSecond {
		return 0, errPacked
	}
	return ((hour*60+minute)*60+second)*microsPerSecond + micro, nil
}

// UnpackDateTime is the inverse of PackDateTime, as strict as UnpackTime, about the calendar too.
func UnpackDateTime(packed int64) (micros int64, err error) {
	days, ok := Days(int(packed>>46), int(packed>>42&15), int(packed>>37&31))
	if !ok {
		return 0, errPacked
	}
	rest, err := UnpackTime(packed & (1<<37 - 1))
	return days*microsPerDay + rest, err
}

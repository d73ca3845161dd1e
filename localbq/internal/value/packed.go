package value

import "fmt"

// PackedTime unpacks a civil time into microseconds since midnight: bits 0 to 19 hold microseconds, 20 to 25 seconds, 26
// to 31 minutes, 32 to 36 hours (BigQuery documentation, "Data type conversions" of the Storage Write API; the bit layout
// of CivilTimeEncoder). A bit set above them is an error.
func PackedTime(p int64) (int64, error) {
	if p < 0 || p>>37 != 0 {
		return 0, fmt.Errorf("Invalid time value %d: bits are set above the hour", p)
	}
	micros, ok := packedClock(p)
	if !ok {
		return 0, fmt.Errorf("Invalid time value %d", p)
	}
	return micros, nil
}

// PackedDateTime unpacks a civil date and time into microseconds since 1970-01-01 00:00: the time as in PackedTime, bits
// 37 to 41 the day, 42 to 45 the month, 46 to 59 the year.
func PackedDateTime(p int64) (int64, error) {
	if p < 0 || p>>60 != 0 {
		return 0, fmt.Errorf("Invalid datetime value %d: bits are set above the year", p)
	}
	days, err := civilDays(int(p>>46), int(p>>42&0xf), int(p>>37&0x1f))
	micros, ok := packedClock(p)
	if err != nil || !ok {
		return 0, fmt.Errorf("Invalid datetime value %d", p)
	}
	return days*microsPerDay + micros, nil
}

func packedClock(p int64) (int64, bool) {
	micro, second, minute, hour := p&0xfffff, p>>20&0x3f, p>>26&0x3f, p>>32&0x1f
	ok := micro < microsPerSecond && second < 60 && minute < 60 && hour < 24
	return hour*microsPerHour + minute*microsPerMinute + second*microsPerSecond + micro, ok
}

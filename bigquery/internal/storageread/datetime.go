package storageread

import "github.com/millrace-dev/millrace/bigquery/row"

// parseDateTime reads a DATETIME as sessions write it: yyyy-mm-dd, T or a blank, hh:mm:ss, and up to nine digits of a
// fraction, of which those beyond microseconds are dropped. The answer counts microseconds from 1970-01-01T00:00:00 as
// if that were UTC.
func parseDateTime(s []byte) (micros int64, ok bool) {
	if len(s) < 19 || s[4] != '-' || s[7] != '-' || s[10] != 'T' && s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, month, day := digits(s[0:4]), digits(s[5:7]), digits(s[8:10])
	hour, minute, second := digits(s[11:13]), digits(s[14:16]), digits(s[17:19])
	days, ok := row.Days(year, month, day)
	if !ok {
		return 0, false
	}
	if uint(hour) > 23 || uint(minute) > 59 || uint(second) > 59 {
		return 0, false
	}
	fraction, ok := parseFraction(s[19:])
	if !ok {
		return 0, false
	}
	seconds := days*86400 + int64(hour*3600+minute*60+second)
	return seconds*1e6 + fraction, true
}

func digits(s []byte) int {
	n := 0
	for _, c := range s {
		if c -= '0'; c > 9 {
			return -1
		}
		n = n*10 + int(c&15)
	}
	return n
}

func parseFraction(s []byte) (micros int64, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	if s[0] != '.' || len(s) == 1 || len(s) > 10 || digits(s[1:]) < 0 {
		return 0, false
	}
	n := int64(digits(s[1:min(len(s), 7)]))
	for range 7 - len(s) {
		n *= 10
	}
	return n, true
}

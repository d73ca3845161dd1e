package jsonrow

import "strconv"

// survives says whether a number's text and the float64 made of it are the same number once the float64 is printed as JSON
// again, that is with the fewest digits that tell it from its neighbours.
func survives(lit []byte, v float64) bool {
	if d := countDigits(lit); d <= 15 && (v > 1e-290 || v < -1e-290) {
		return true // every number of 15 digits has its own float64
	}
	var text [32]byte
	var a, b normal
	a.read(lit)
	b.read(strconv.AppendFloat(text[:0], v, 'e', -1, 64))
	return a == b
}

func countDigits(lit []byte) (n int) {
	for _, c := range lit {
		if c-'0' <= 9 {
			n++
		} else if c|0x20 == 'e' {
			break
		}
	}
	return n
}

// normal is a decimal number without leading and trailing zeros, so that equal numbers are equal values. Numbers of more
// digits than a float64 ever prints are equal to none.
type normal struct {
	digits   [20]byte
	n        int
	exponent int64 // of the last digit
	negative bool
	long     bool
}

// read takes apart a number in JSON's grammar.
func (d *normal) read(lit []byte) {
	i := 0
	if lit[0] == '-' {
		d.negative = true
		i++
	}
	point := false
	var pending int64 // zeros that count only when a digit follows
	for ; i < len(lit) && lit[i]|0x20 != 'e'; i++ {
		if lit[i] == '.' {
			point = true
			continue
		}
		if point {
			d.exponent--
		}
		if lit[i] == '0' {
			if d.n > 0 {
				pending++
			}
			continue
		}
		if int64(d.n)+pending >= int64(len(d.digits)) {
			d.long = true
			return
		}
		for ; pending > 0; pending-- {
			d.digits[d.n] = '0'
			d.n++
		}
		d.digits[d.n] = lit[i]
		d.n++
	}
	d.exponent += pending
	if i < len(lit) {
		d.exponent += clampedExponent(lit[i+1:])
	}
	if d.n == 0 {
		*d = normal{} // zeros are equal, whatever their sign and exponent
	}
}

func clampedExponent(text []byte) (e int64) {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	for _, c := range text {
		e = min(e*10+int64(c-'0'), 1<<40)
	}
	if negative {
		return -e
	}
	return e
}

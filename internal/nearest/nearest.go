// Package nearest finds the known name that a mistyped one most likely meant.
package nearest

import (
	"strings"
	"unicode/utf8"
)

// To is the known name that word most likely meant, "" when none is near.
func To(word string, known []string) string {
	best, bestDistance := "", 1+max(1, utf8.RuneCountInString(word)/3)
	for _, k := range known {
		if apart := utf8.RuneCountInString(k) - utf8.RuneCountInString(word); max(apart, -apart) >= bestDistance {
			continue // as many insertions or deletions at least
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := range s {
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(s)][len(t)]
}

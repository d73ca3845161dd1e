package text

import "strings"

// Quoted is a string in double quotes as error messages of queries show it.
func Quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

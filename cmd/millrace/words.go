package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/bigquery"
)

type (
	tableReport   = bigquery.DestinationReport
	appendFailure = bigquery.AppendFailure
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// shellWord writes s so that a shell reads it as one word.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// typedAgain is a command as it was typed, but for where it started: what goes on with it must have the same input, store
// and settings.
func typedAgain(cmd *cobra.Command, args []string) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "from" {
			return
		}
		for _, value := range flagValues(f) {
			word := "--" + f.Name
			value = withoutKeyFile(f.Name, value)
			if value != f.NoOptDefVal {
				word += "=" + value
			}
			words = append(words, shellWord(word))
		}
	})
	if slices.ContainsFunc(args, func(arg string) bool { return len(arg) > 1 && arg[0] == '-' }) {
		words = append(words, "--") // what follows is no flag
	}
	for _, arg := range args {
		words = append(words, shellWord(arg))
	}
	return strings.Join(words, " ")
}

func flagValues(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// withoutKeyFile leaves out where a service account's key is: what a command prints ends up in the logs of others.
func withoutKeyFile(flag, value string) string {
	key, _, _ := strings.Cut(value, "=")
	switch {
	case flag == "key-file":
		return keyFilePlace
	case flag == "set" && strings.Contains(value, "keyFile"):
		return key + "=" + keyFilePlace
	}
	return value
}

// keyFilePlace stands where a reader puts the path.
const keyFilePlace = "KEY_FILE"

// harmless puts a dot in place of everything that could steer a terminal, or make text look like other text on it. Lines
// and tabs stay.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
			return '·'
		}
		return r
	}, s)
}

// oneLine is harmless without lines.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "·", "\t", "·").Replace(harmless(s))
}

// shortPath is a path as seen from here, where that is shorter.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, abs); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// loopback completes an address without a host: nothing listens beyond this machine unless a host says so.
func loopback(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// roundDuration leaves about three digits.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

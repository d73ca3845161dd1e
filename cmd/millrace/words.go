package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
)

type tableReport = bigquery.DestinationReport

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// shellWord writes s so that a shell reads it as one word.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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

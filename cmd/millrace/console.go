package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// console is standard error: messages, logs, and on a terminal a status line below them that is drawn anew.
type console struct {
	mu     sync.Mutex // guards w and status
	w      io.Writer
	tty    bool
	width  func() int
	status string

	asJSON bool // messages are lines of the log
}

func newConsole(w io.Writer) *console {
	c := &console{w: w, width: func() int { return 80 }}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.tty = true
		c.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
			return 80
		}
	}
	return c
}

// Write puts p above the status line, without what could steer a terminal: messages quote names of files, keys and words of
// others.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	_, err := io.WriteString(c.w, harmless(string(p)))
	c.draw()
	return len(p), err
}

// printf says something to people, or, where the log is JSON, one message for each line to programs.
func (c *console) printf(format string, args ...any) {
	if c.asJSON {
		c.record(slog.LevelInfo, fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(c, format, args...)
}

// fail is printf for what ends the command.
func (c *console) fail(format string, args ...any) {
	if c.asJSON {
		c.record(slog.LevelError, fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(c, format, args...)
}

func (c *console) record(level slog.Level, text string) {
	log := slog.New(slog.NewJSONHandler(c, nil))
	for line := range strings.Lines(text) {
		if msg := strings.TrimPrefix(strings.TrimSpace(line), "millrace: "); msg != "" {
			log.Log(context.Background(), level, msg)
		}
	}
}

// setStatus draws the status line, "" takes it away. Where there is no terminal it does nothing.
func (c *console) setStatus(line string) {
	if !c.tty {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
	c.status = line
	c.draw()
}

func (c *console) wipe() {
	if c.status != "" {
		io.WriteString(c.w, "\r\x1b[K")
	}
}

func (c *console) draw() {
	if c.status == "" {
		return
	}
	line := []rune(oneLine(c.status))
	io.WriteString(c.w, string(line[:min(len(line), c.width()-1)]))
}

// logger writes to the console in the format that was asked for.
func (c *console) logger(format string, quiet, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	switch {
	case quiet:
		level = slog.LevelError
	case verbose:
		level = slog.LevelDebug
	case format == "json":
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(c, o))
	}
	return slog.New(slog.NewTextHandler(c, o))
}

// columns lays rows out under a header, numbers (columns named in right) to the right.
func columns(header []string, rows [][]string, right map[int]bool) string {
	width := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, cell := range r {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	line := func(r []string) {
		var l strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if right[i] {
				l.WriteString(pad + cell)
			} else {
				l.WriteString(cell + pad)
			}
			l.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(header)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

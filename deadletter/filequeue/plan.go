package filequeue

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"

	"github.com/millrace-dev/millrace/deadletter"
)

// cutBytes is about how much of a file one lane takes at once.
const cutBytes = 16 << 20

// plan is what there is to replay in one file.
type plan struct {
	path string
	// print tells files apart, whatever they are called: a hash of the first line, which has the instant at which it was written.
	print string
	cuts  []cut   // the beginning of each part, and the end of the last
	pass  []int64 // where lines begin that are not replayed, in order
}

// cut is a place between two lines.
type cut struct {
	at   int64
	line int64  // number of the line before
	sum  string // hash of all bytes before
}

// end is behind the last line that has an end.
func (p *plan) end() cut { return p.cuts[len(p.cuts)-1] }

// skips reports whether the line at at is not replayed.
func (p *plan) skips(at int64) bool {
	_, found := slices.BinarySearch(p.pass, at)
	return found
}

// Survey is what a replay found in its files. Every line is counted once, blank ones not at all.
type Survey struct {
	Letters    int64 // that are replayed, or have been
	Replayed   int64 // of these, that earlier runs have taken care of
	Duplicates int64 // that are in the queue before
	OtherJobs  int64 // of jobs with another name
	NotHere    int64 // letters that do not hold their record; Why says so of the first
	Damaged    int64 // lines that are no letters
	Torn       int64 // beginnings of lines at the end of files

	Why error
}

// surveyor goes through the files of one queue.
type surveyor struct {
	job    string
	done   map[string]mark
	fold   deadletter.Fold
	survey *Survey
}

// file goes through one file. It answers nil when there is no line in it.
func (s *surveyor) file(ctx context.Context, path string) (*plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	l := lines{in: bufio.NewReaderSize(f, 64<<10), hash: sum}
	p := &plan{path: path}
	var done mark
	for {
		r, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if r.torn {
			s.survey.Torn++
			break
		}
		if p.print == "" && !r.blank() {
			p.print = sumOf(sum)
			done = s.done[p.print]
			p.cuts = append(p.cuts, cut{})
		}
		if r.next == done.End && sumOf(sum) != done.Sum || r.at < done.End && r.next > done.End {
			return nil, changed(path)
		}
		if r.blank() {
			continue
		}
		e := r.entry()
		s.count(p, &e, r.at < done.End)
		if r.next == done.End || r.next-p.end().at >= cutBytes {
			p.cuts = append(p.cuts, cut{r.next, l.line, sumOf(sum)})
		}
	}
	if p.print == "" {
		return nil, nil
	}
	if l.at < done.End {
		return nil, changed(path)
	}
	if l.at > p.end().at {
		p.cuts = append(p.cuts, cut{l.at, l.line, sumOf(sum)})
	}
	return p, nil
}

func changed(path string) error {
	return fmt.Errorf("%s: what was replayed of this file has been changed since, so that what is left of it cannot be told: "+
		"copy the letters that are to be replayed into a new file, and replay that", path)
}

// sumOf is the hash so far. Two files are never taken for one, and nobody makes two that collide in 128 bits by accident.
func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:16]) }

// count says what becomes of a line.
func (s *surveyor) count(p *plan, e *Entry, replayed bool) {
	n := &s.survey.Letters
	switch {
	case e.Err != nil:
		n = &s.survey.Damaged
	case e.Letter.Job != s.job:
		n = &s.survey.OtherJobs
	case e.Letter.Replayable() != nil:
		n = &s.survey.NotHere
		if s.survey.Why == nil {
			s.survey.Why = fmt.Errorf("%s:%d: %w", p.path, e.Line, e.Letter.Replayable())
		}
	case !s.fold.First(&e.Letter):
		n = &s.survey.Duplicates
	}
	*n++
	if n != &s.survey.Letters {
		p.pass = append(p.pass, e.At)
	} else if replayed {
		s.survey.Replayed++
	}
}

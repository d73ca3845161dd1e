package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/millrace-dev/millrace/stream"
)

// Record is one record of a file.
type Record struct {
	// Bytes is the record: a line without its end, the datum of an Avro record, or a protobuf message without its length. It is valid until the reader is asked for more.
	Bytes []byte
	// Header is the record that names the columns, where the file has one. It is the same for all records of a file, and must
	// not be changed.
	Header []byte
	// HeaderLine is the line that Header begins in, from 1.
	HeaderLine int64
	// Batch and Index are the batch that the record is a row of, and which one, in formats whose files are containers; Bytes
	// is nil then. A batch is valid until the reader is asked for more.
	Batch any
	Index int
	// Schema is the schema that a record of an Avro file was written with, as JSON: the same string for all records of a file.
	Schema string
	// Err says that the record could not be read whole; Bytes is then its beginning.
	Err error
}

// OriginalBytes gives dead letters the record as it stood in the file, or what its Batch makes of it.
func (r Record) OriginalBytes() []byte {
	if b, ok := r.Batch.(interface{ OriginalBytes(Record) []byte }); ok {
		return b.OriginalBytes(r)
	}
	return r.Bytes
}

// Source reads records from files. It is bounded: files that appear after the job has started are not read.
type Source struct {
	patterns []string
	options  Options
	stdin    *standardInput
}

// standardInput is an input that can be read once, by one of all readers.
type standardInput struct {
	r     io.Reader
	taken atomic.Bool
}

// Stdin is the path that means standard input.
const Stdin = "-"

// NewSource reads the files that paths and patterns name (see [path/filepath.Match]), each once, in the order of their names.
// Nothing is opened yet; the pattern that matches no file is an error when the job starts. The path "-" is the reader
// given to WithStdin and stands alone.
func NewSource(paths []string, o Options) (*Source, error) {
	r, err := o.resolve()
	errs := []error{err}
	if len(paths) == 0 {
		errs = append(errs, errors.New("paths is empty: name at least one file or pattern"))
	}
	for i, p := range paths {
		if _, err := filepath.Match(p, ""); err != nil {
			errs = append(errs, fmt.Errorf("paths[%d]: pattern %q: %w", i, p, err))
		}
		if p == "" || strings.ContainsRune(p, 0) {
			errs = append(errs, fmt.Errorf("paths[%d]: %q is not a path", i, p))
		}
		if p == Stdin && len(paths) > 1 {
			errs = append(errs, fmt.Errorf("paths[%d]: standard input cannot be read together with files", i))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("files source: %w", err)
	}
	return &Source{patterns: slices.Clone(paths), options: r}, nil
}

// WithStdin makes r what the path "-" reads. It can be read once, by one job attempt: a job over it can neither be started
// again nor resumed, and a second attempt fails.
func (s *Source) WithStdin(r io.Reader) *Source {
	s.stdin = &standardInput{r: r}
	return s
}

// Bounded is true.
func (s *Source) Bounded() bool { return true }

// NewEnumerator lists the files, or takes over the list of a checkpoint.
func (s *Source) NewEnumerator(_ context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	if ec.State != nil {
		return restoreEnumerator(ec.State)
	}
	paths, err := s.Paths()
	if err != nil {
		return nil, err
	}
	if s.options.Container != nil && len(paths) == 1 && paths[0] == Stdin {
		return nil, fmt.Errorf("files source: files of the format %s are read from their ends, and standard input has none that can be read first: name a file", s.options.Format)
	}
	return s.newEnumerator(paths)
}

// NewReader makes the reader of one lane.
func (s *Source) NewReader(context.Context, stream.ReaderContext) (stream.Reader[Record], error) {
	return &reader{options: s.options, stdin: s.stdin}, nil
}

// Paths is the files that the patterns match now, sorted, each once.
func (s *Source) Paths() ([]string, error) {
	var all []string
	var errs []error
	for i, p := range s.patterns {
		if p == Stdin {
			return []string{Stdin}, nil
		}
		matches, err := expand(p)
		if err != nil {
			errs = append(errs, s.atPath(i, err))
		}
		all = append(all, matches...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// atPath says which of the paths is wrong.
func (s *Source) atPath(i int, err error) error {
	if noFile(err) {
		return &PathError{Index: i, Path: s.patterns[i], Err: err}
	}
	return fmt.Errorf("files source: %w", err)
}

// pathOf is the index of the path, or pattern, that a file was found by.
func (s *Source) pathOf(file string) int {
	return max(0, slices.IndexFunc(s.patterns, func(p string) bool {
		ok, err := filepath.Match(filepath.Clean(p), file)
		return filepath.Clean(p) == file || ok && err == nil
	}))
}

// Reads reports whether the file at path is among those that a job over the source would read, or would be if it were
// there: a job that writes to such a file would read what it writes.
func (s *Source) Reads(path string) bool {
	if s.readsByName(path) {
		return true
	}
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if f, ok := s.stdinFile(); ok {
		in, err := f.Stat()
		return err == nil && os.SameFile(info, in)
	}
	paths, err := s.Paths()
	return err == nil && slices.ContainsFunc(paths, func(p string) bool {
		in, err := os.Stat(p)
		return err == nil && os.SameFile(info, in)
	})
}

func (s *Source) readsByName(path string) bool {
	name, err := filepath.Abs(path)
	return err == nil && slices.ContainsFunc(s.patterns, func(p string) bool {
		pattern, err := filepath.Abs(p)
		if err != nil || p == Stdin {
			return false
		}
		ok, err := filepath.Match(pattern, name)
		return err == nil && ok
	})
}

// stdinFile is the file that standard input comes from, where that is what the source reads.
func (s *Source) stdinFile() (*os.File, bool) {
	if s.patterns[0] != Stdin || s.stdin == nil {
		return nil, false
	}
	f, ok := s.stdin.r.(*os.File)
	return f, ok
}

func expand(pattern string) ([]string, error) {
	if _, err := os.Lstat(pattern); err == nil {
		return []string{filepath.Clean(pattern)}, nil // a name that happens to hold pattern characters
	}
	matches, err := glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if len(matches) == 0 {
		if !strings.ContainsAny(pattern, metaCharacters) {
			return nil, unfitFile("there is no file %q", pattern)
		}
		return nil, unfitFile("no file matches %q", pattern)
	}
	return matches, nil
}

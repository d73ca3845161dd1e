package filequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// numberDigits is the least that a number has, so that names sort as numbers do for a while.
const numberDigits = 6

// Name is the name of a queue's nth file, from 1.
func Name(path string, n int) string {
	if n == 1 {
		return path
	}
	stem, ext := split(path)
	return fmt.Sprintf("%s.%0*d%s", stem, numberDigits, n, ext)
}

func split(path string) (stem, ext string) {
	ext = filepath.Ext(path)
	if ext == filepath.Base(path) {
		ext = "" // a hidden file
	}
	return strings.TrimSuffix(path, ext), ext
}

// Files is the files that there are of the queue at path, in the order in which they were begun. A queue without files is an
// error.
func Files(path string) ([]string, error) {
	numbers, err := numbers(path)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("dead letters: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	}
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = Name(path, n)
	}
	return names, nil
}

// numbers is the numbers of the files that there are, in order.
func numbers(path string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	var found []int
	for _, e := range entries {
		if n := numberOf(filepath.Base(path), e.Name()); n > 0 && !e.IsDir() {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// numberOf is which file of the queue a name is, 0 if none.
func numberOf(path, name string) int {
	if name == path {
		return 1
	}
	stem, ext := split(path)
	digits, ok := strings.CutPrefix(name, stem+".")
	if !ok {
		return 0
	}
	if digits, ok = strings.CutSuffix(digits, ext); !ok {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 2 || Name(path, n) != name {
		return 0
	}
	return n
}

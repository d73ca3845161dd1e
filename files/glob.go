package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// glob is filepath.Glob, but for folders that cannot be looked into: those are an error. What is in them would be missing
// from the tables without a word.
func glob(pattern string) ([]string, error) {
	pattern = filepath.Clean(pattern)
	if !strings.ContainsAny(pattern, metaCharacters) {
		if _, err := os.Lstat(pattern); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return []string{pattern}, nil
	}
	folder, name := filepath.Split(pattern)
	folders, err := foldersOf(folder)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range folders {
		names, err := namesIn(f)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if ok, err := filepath.Match(name, n); err != nil {
				return nil, err
			} else if ok {
				all = append(all, filepath.Join(f, n))
			}
		}
	}
	return all, nil
}

// metaCharacters are those that make a pattern of a path. A backslash is one except where it separates folders.
var metaCharacters = func() string {
	if filepath.Separator == '\\' {
		return `*?[`
	}
	return `*?[\`
}()

func foldersOf(folder string) ([]string, error) {
	if folder == "" {
		return []string{"."}, nil
	}
	if !strings.ContainsAny(folder, metaCharacters) {
		return []string{folder}, nil
	}
	return glob(folder)
}

// namesIn lists a folder. What is no folder, or not there, has no names.
func namesIn(folder string) ([]string, error) {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

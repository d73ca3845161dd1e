package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// folder keeps objects as files. gocloud.dev/blob/fileblob could, but it does not sync what it writes, and it checks
// that a name is free only against its own process.
type folder struct {
	dir string
	// link makes a second name for a file, and fails when that name is taken. It is os.Link, but for tests.
	link func(old, new string) error
}

func newFolder(dir string) folder { return folder{dir, os.Link} }

// folderOf reads what follows file:// in a URL. A path that does not begin with a slash is relative to the working
// directory, which plain URLs have no way to say.
func folderOf(rest string) (string, error) {
	rest, query, _ := strings.Cut(rest, "?")
	if query != "" {
		return "", fmt.Errorf("a folder takes no parameters, found %q", query)
	}
	if strings.HasPrefix(rest, "localhost/") {
		rest = rest[len("localhost"):]
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return "", err
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return "", errors.New("want the path of a folder after file://")
	}
	return filepath.Clean(filepath.FromSlash(path)), nil
}

// create writes a file beside the final one, syncs it, and links it to its name, which fails when the name is taken
// whoever took it. The folder is synced too, or the name could be gone after a power cut.
func (f folder) create(_ context.Context, key string, data []byte) error {
	path := filepath.Join(f.dir, filepath.FromSlash(key))
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), tempName(filepath.Base(path), rand.Text()))
	defer os.Remove(temp)
	if err := writeFile(temp, data); err != nil {
		return err
	}
	switch err := f.link(temp, path); {
	case errors.Is(err, fs.ErrExist):
		return ErrCheckpointExists
	case err != nil:
		// Some file systems have no links. There a cut can leave a torn file, which its checksum tells.
		if err := writeFile(path, data); err != nil {
			return existing(err)
		}
	}
	return syncFolder(filepath.Dir(path))
}

// tempName hides the file from names, and lets remove find it: a process that was killed leaves it behind.
func tempName(name, unique string) string { return "." + name + "." + unique }

func existing(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return ErrCheckpointExists
	}
	return err
}

func writeFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// makeFolder is os.MkdirAll, with every new folder's name on disk.
func makeFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file is in the way")}
	}
	if err := makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f folder) names(_ context.Context, sub string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (f folder) read(_ context.Context, key string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoCheckpoint
	}
	return data, err
}

func (f folder) remove(ctx context.Context, key string) error {
	path := filepath.Join(f.dir, filepath.FromSlash(key))
	names, err := f.names(ctx, filepath.Dir(filepath.FromSlash(key)))
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != filepath.Base(path) && !strings.HasPrefix(name, tempName(filepath.Base(path), "")) {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (folder) close() error { return nil }

package objects

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder is a medium that outlives the process. What lies in it:
//
//	buckets/<bucket>/bucket.json     the attributes of a bucket
//	buckets/<bucket>/<digest>.json   the attributes of an object; the digest is of its name
//	uploads/<id>.json                a resumable upload
//	data/<random>                    the bytes of an object or an upload
//	floor                            a number that no generation to come may be below
type folder struct {
	dir string
	// force forces everything to the disk before it is acknowledged.
	force bool
}

const (
	bucketsFolder = "buckets"
	uploadsFolder = "uploads"
	dataFolder    = "data"
	floorFile     = "floor"
	bucketFile    = "bucket.json"
	unfinished    = ".next"
)

// stored is an object as its file has it.
type stored struct {
	Object
	Data   string `json:"data"`
	Upload string `json:"upload,omitempty"`
}

func openFolder(dir string, force bool) (*folder, error) {
	f := &folder{dir: dir, force: force}
	for _, name := range []string{bucketsFolder, uploadsFolder, dataFolder} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	return f, f.syncDir(dir)
}

func (f *folder) bucket(name string) string { return filepath.Join(f.dir, bucketsFolder, name) }

func (f *folder) object(bucket, name string) string {
	digest := sha256.Sum256([]byte(name))
	return filepath.Join(f.bucket(bucket), hex.EncodeToString(digest[:])+".json")
}

func (f *folder) upload(id string) string { return filepath.Join(f.dir, uploadsFolder, id+".json") }

func (f *folder) data(name string) string { return filepath.Join(f.dir, dataFolder, name) }

func (f *folder) create() (data, error) {
	name := rand.Text()
	file, err := os.OpenFile(f.data(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &fileData{File: file, id: name, force: f.force}, f.syncDir(filepath.Join(f.dir, dataFolder))
}

func (f *folder) open(name string) (data, error) {
	file, err := os.Open(f.data(name))
	if err != nil {
		return nil, err
	}
	return &fileData{File: file, id: name}, nil
}

// resume opens bytes to go on writing behind the first size of them.
func (f *folder) resume(name string, size int64) (data, error) {
	file, err := os.OpenFile(f.data(name), os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	d := &fileData{File: file, id: name, force: f.force}
	info, err := file.Stat()
	if err == nil && (size < 0 || info.Size() < size) {
		err = fmt.Errorf("file %s has %d bytes, and %d were acknowledged: a part of it is lost", file.Name(), info.Size(), size)
	}
	if err == nil {
		err = d.truncate(size)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

func (f *folder) drop(name string) error { return os.Remove(f.data(name)) }

func (f *folder) saveBucket(b *Bucket) error {
	if err := os.Mkdir(f.bucket(b.Name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.save(filepath.Join(f.bucket(b.Name), bucketFile), b); err != nil {
		return err
	}
	return f.syncDir(filepath.Join(f.dir, bucketsFolder))
}

// removeBucket takes the attributes away first: a folder without them is no bucket.
func (f *folder) removeBucket(name string) error {
	if err := os.Remove(filepath.Join(f.bucket(name), bucketFile)); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(f.bucket(name)), f.syncDir(filepath.Join(f.dir, bucketsFolder)))
}

func (f *folder) saveObject(o *Object) error {
	return f.save(f.object(o.Bucket, o.Name), stored{*o, o.data, o.upload})
}

func (f *folder) removeObject(o *Object) error {
	return errors.Join(os.Remove(f.object(o.Bucket, o.Name)), f.syncDir(f.bucket(o.Bucket)))
}

func (f *folder) saveUpload(u *session) error { return f.save(f.upload(u.ID), u) }

func (f *folder) removeUpload(id string) error {
	err := os.Remove(f.upload(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, f.syncDir(filepath.Join(f.dir, uploadsFolder)))
}

func (f *folder) saveFloor(generation int64) error {
	return f.save(filepath.Join(f.dir, floorFile), generation)
}

// save replaces a file as a whole: either the old one or the new one is there, whatever happens.
func (f *folder) save(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	next, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = next.Write(append(text, '\n'))
	if err == nil && f.force {
		err = next.Sync()
	}
	if err := errors.Join(err, next.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	return f.syncDir(filepath.Dir(path))
}

// syncDir makes the names in a folder durable.
func (f *folder) syncDir(dir string) error {
	if !f.force {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// read reads a file that save wrote.
func read(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("file %s is damaged: %w", path, err)
	}
	return nil
}

// files are the names in one of the folders; what was being written when a process ended is removed.
func (f *folder) files(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), unfinished) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// fileData is data in a file.
type fileData struct {
	*os.File
	id    string
	force bool
}

func (d *fileData) name() string { return d.id }

func (d *fileData) sync() error {
	if !d.force {
		return nil
	}
	return d.File.Sync()
}

func (d *fileData) truncate(size int64) error {
	if err := d.Truncate(size); err != nil {
		return err
	}
	_, err := d.Seek(size, 0)
	return err
}

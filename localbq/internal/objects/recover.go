package objects

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recover reads back what a folder holds, and removes what no object and no upload names.
func (s *Store) recover(f *folder) error {
	if err := read(filepath.Join(f.dir, floorFile), &s.floor); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.last = s.floor
	names, err := f.files(filepath.Join(f.dir, bucketsFolder))
	if err != nil {
		return err
	}
	named := map[string]bool{}       // bytes that are somebody's
	finished := map[string]*Object{} // by upload
	for _, name := range names {
		if err := s.recoverBucket(f, name, named, finished); err != nil {
			return err
		}
	}
	if err := s.recoverUploads(f, named, finished); err != nil {
		return err
	}
	return f.collect(named)
}

func (s *Store) recoverBucket(f *folder, name string, named map[string]bool, finished map[string]*Object) error {
	dir := f.bucket(name)
	b := &bucket{}
	if err := read(filepath.Join(dir, bucketFile), &b.Bucket); errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(dir) // it was being made, or removed
	} else if err != nil {
		return err
	}
	names, err := f.files(dir)
	if err != nil {
		return err
	}
	for _, file := range names {
		if file == bucketFile {
			continue
		}
		var on stored
		if err := read(filepath.Join(dir, file), &on); err != nil {
			return err
		}
		o := &on.Object
		o.data, o.upload = on.Data, on.Upload
		if f.object(name, o.Name) != filepath.Join(dir, file) || o.Bucket != name {
			return fmt.Errorf("file %s is damaged: it tells of object %q of bucket %q", filepath.Join(dir, file), o.Name, o.Bucket)
		}
		b.put(o)
		named[o.data], s.last = true, max(s.last, o.Generation)
		if o.upload != "" {
			finished[o.upload] = o
		}
	}
	s.buckets[name] = b
	return nil
}

// recoverUploads reads the uploads. One whose object is there is complete, even if its own file does not say so.
func (s *Store) recoverUploads(f *folder, named map[string]bool, finished map[string]*Object) error {
	names, err := f.files(filepath.Join(f.dir, uploadsFolder))
	if err != nil {
		return err
	}
	for _, file := range names {
		u := &Upload{store: s}
		if err := read(f.upload(strings.TrimSuffix(file, ".json")), &u.session); err != nil {
			return err
		}
		if o := finished[u.ID]; u.Done == nil && o != nil {
			done := o.clone()
			u.Done, u.Persisted = &done, done.Size
		}
		if u.Done == nil {
			named[u.Data] = true
			if err := u.resume(f); err != nil {
				return fmt.Errorf("upload %s: %w", u.ID, err)
			}
		}
		s.uploads[u.ID] = u
	}
	return nil
}

// resume opens the bytes that were acknowledged and sums them up again.
func (u *Upload) resume(f *folder) error {
	d, err := f.resume(u.Data, u.Persisted)
	if err != nil {
		return err
	}
	u.data, u.sums = d, newSums()
	if n, err := io.Copy(u.sums, io.NewSectionReader(d, 0, u.Persisted)); err != nil || n < u.Persisted {
		return errors.Join(err, d.Close())
	}
	return nil
}

// collect removes the bytes that are nobody's.
func (f *folder) collect(named map[string]bool) error {
	names, err := f.files(filepath.Join(f.dir, dataFolder))
	if err != nil {
		return err
	}
	for _, name := range names {
		if !named[name] {
			if err := f.drop(name); err != nil {
				return err
			}
		}
	}
	return nil
}

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// manifest is what of a folder counts. It is replaced as a whole; files that it does not lead to are leftovers.
type manifest struct {
	Format     int `json:"format"`     // 1
	Checkpoint int `json:"checkpoint"` // number of the checkpoint file; 0 is none
	Log        int `json:"log"`        // number of the first segment behind the checkpoint
}

const (
	manifestName   = "MANIFEST"
	manifestFormat = 1
)

func checkpointName(number int) string { return fmt.Sprintf("checkpoint-%06d", number) }

func dataName(number int) string { return fmt.Sprintf("data-%06d", number) }

// readManifest reads the manifest of a folder; a new folder has one that leads nowhere.
func readManifest(dir string) (manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return manifest{Format: manifestFormat, Log: 1}, nil
	}
	if err != nil {
		return manifest{}, err
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return manifest{}, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	if m.Format != manifestFormat {
		return manifest{}, fmt.Errorf("%s: written in format %d: this version reads format %d", filepath.Join(dir, manifestName), m.Format, manifestFormat)
	}
	return m, nil
}

func (m manifest) write(dir string) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, manifestName), append(b, '\n'))
}

// sweep removes the files that the manifest does not lead to: data files are kept where keep says so.
func (m manifest) sweep(dir string, keep func(data int) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		kind, digits, _ := strings.Cut(e.Name(), "-")
		var number int
		if _, err := fmt.Sscanf(digits, "%d", &number); err != nil {
			continue
		}
		old := kind == "log" && number < m.Log || kind == "checkpoint" && number != m.Checkpoint || kind == "data" && !keep(number)
		if old {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

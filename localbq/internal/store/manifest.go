package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// manifest is what of a folder counts. It is replaced as a whole; files that it does not lead to are leftovers.
type manifest struct {
	Format     int `json:"format"`     // 4; 1 had no created streams and no changes, 2 no times of ingestion, 3 no keys of columns, no names given anew, no tables made with rows
	Checkpoint int `json:"checkpoint"` // number of the checkpoint file; 0 is none
	Log        int `json:"log"`        // number of the first segment behind the checkpoint
	// Sum is a checksum of the other fields: a digit that has changed leads to another state, and nobody would know. 0 is none.
	Sum uint32 `json:"sum,omitempty"`
}

const (
	manifestName   = "MANIFEST"
	manifestFormat = 4
)

func checkpointName(number int) string { return fmt.Sprintf("checkpoint-%06d", number) }

func dataName(number int) string { return fmt.Sprintf("data-%06d", number) }

// readManifest reads the manifest of a folder; a new folder has one that leads nowhere, and is not written.
func readManifest(dir string) (m manifest, written bool, err error) {
	path := filepath.Join(dir, manifestName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return manifest{Format: manifestFormat, Log: 1}, false, nil
	}
	if err != nil {
		return manifest{}, false, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return manifest{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if m.Format < 1 || m.Format > manifestFormat {
		return manifest{}, false, fmt.Errorf("%s: written in format %d: this version reads formats 1 to %d", path, m.Format, manifestFormat)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&manifest{}); err != nil {
		return manifest{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if m.Checkpoint < 0 || m.Log < 1 || m.Sum != 0 && m.Sum != m.sum() {
		return manifest{}, false, fmt.Errorf("%s is damaged: it holds %s", path, bytes.TrimSpace(b))
	}
	return m, true, nil
}

func (m manifest) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d %d", m.Format, m.Checkpoint, m.Log), castagnoli)
}

func (m manifest) write(dir string) error {
	m.Sum = m.sum()
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
		kind, number, ok := parseName(e.Name())
		if !ok {
			continue
		}
		old := kind == "log" && number < m.Log || kind == "checkpoint" && number != m.Checkpoint || kind == "data" && !keep(number)
		if old {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// parseName reads the name of a file with a number: log-000012 is "log" and 12.
func parseName(name string) (kind string, number int, ok bool) {
	kind, digits, _ := strings.Cut(name, "-")
	number, err := strconv.Atoi(digits)
	return kind, number, err == nil && number > 0
}

// segments are the numbers of the log's segments from the manifest's first on, which follow one another. A folder whose
// manifest was never written may have none; where one is missing, what it held is missing too.
func (m manifest) segments(dir string, written bool) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []int
	checkpoints := false
	for _, e := range entries {
		kind, number, ok := parseName(e.Name())
		checkpoints = checkpoints || ok && kind == "checkpoint"
		if ok && kind == "log" && number >= m.Log {
			all = append(all, number)
		}
	}
	slices.Sort(all)
	for i, number := range all {
		if number != m.Log+i {
			return nil, fmt.Errorf("%s is missing, and the log goes on in %s", filepath.Join(dir, segmentName(m.Log+i)), segmentName(number))
		}
	}
	if len(all) == 0 && (written || checkpoints) {
		return nil, fmt.Errorf("%s is missing, and this is no new folder", filepath.Join(dir, segmentName(m.Log)))
	}
	return all, nil
}

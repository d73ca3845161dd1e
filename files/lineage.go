package files

import (
	"path/filepath"
	"slices"
	"strings"
)

// Lineage is the files that the source is configured to read, as absolute paths; for a pattern the folder that holds all of
// what it may match. Standard input has no name. Nothing is looked up.
func (s *Source) Lineage() []string {
	var all []string
	for _, p := range s.patterns {
		if p == Stdin {
			continue
		}
		for strings.ContainsAny(p, metaCharacters) {
			p = filepath.Dir(p)
		}
		if abs, err := filepath.Abs(p); err == nil && !slices.Contains(all, abs) {
			all = append(all, abs)
		}
	}
	return all
}

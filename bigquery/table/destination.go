package table

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Destination names one table. It is a value: comparable, fit to be a map key, the same triple is the same table.
type Destination struct {
	Project string // project id, possibly with a domain: "example.com:project"
	Dataset string
	Table   string
}

// ErrDestination is found in errors about names that cannot be a table's.
var ErrDestination = errors.New("invalid table name")

// ParseDestination reads "project.dataset.table", the form String writes. The project may hold a domain part with dots
// ("example.com:project"); dataset and table hold none.
func ParseDestination(s string) (Destination, error) {
	t := strings.LastIndexByte(s, '.')
	if t < 0 {
		return Destination{}, fmt.Errorf("%w: %q: expected project.dataset.table", ErrDestination, s)
	}
	d := strings.LastIndexByte(s[:t], '.')
	if d < 0 {
		return Destination{}, fmt.Errorf("%w: %q: expected project.dataset.table", ErrDestination, s)
	}
	dst := Destination{Project: s[:d], Dataset: s[d+1 : t], Table: s[t+1:]}
	return dst, dst.Validate()
}

// String is "project.dataset.table".
func (d Destination) String() string { return d.Project + "." + d.Dataset + "." + d.Table }

// Path is the resource name "projects/p/datasets/d/tables/t".
func (d Destination) Path() string {
	return "projects/" + d.Project + "/datasets/" + d.Dataset + "/tables/" + d.Table
}

// Validate checks the three parts against what BigQuery accepts and reports every fault at once.
//
// Dataset ids are letters, digits and underscores, 1 to 1,024 characters. Table ids are up to 1,024 bytes of letters,
// marks, numbers, connector and dash punctuation and spaces, in Unicode, with an optional partition decorator behind a
// "$" (BigQuery documentation, "Table naming" and "Name datasets"). Project ids are checked for the characters that
// would change the meaning of a resource name or of SQL, and left to the service otherwise.
func (d Destination) Validate() error {
	return errors.Join(
		partError(d, "project", checkProject(d.Project)),
		partError(d, "dataset", checkDataset(d.Dataset)),
		partError(d, "table", CheckTableID(d.Table)),
	)
}

func partError(d Destination, part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w %q: %s %w", ErrDestination, d.String(), part, err)
}

func checkProject(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' || r == ':') {
			return fmt.Errorf("has the character %q: expected letters, digits, hyphens, and a domain before a colon", r)
		}
	}
	if len(s) > 255 {
		return fmt.Errorf("is %d bytes long: expected at most 255", len(s))
	}
	if strings.IndexByte(".:-_", s[0]) >= 0 {
		return fmt.Errorf("begins with %q: expected a letter or a digit", s[0])
	}
	return nil
}

func checkDataset(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if len(s) > 1024 {
		return fmt.Errorf("is %d bytes long: expected at most 1024", len(s))
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_') {
			return fmt.Errorf("has the character %q: expected letters, digits and underscores", r)
		}
	}
	return nil
}

// CheckTableID reports why s cannot be a table id, nil when it can.
func CheckTableID(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if len(s) > 1024 {
		return fmt.Errorf("is %d bytes long: expected at most 1024", len(s))
	}
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	id, decorator, decorated := strings.Cut(s, "$")
	if decorated && !partitionDecorator(decorator) {
		return fmt.Errorf("has the partition decorator %q: expected $YYYY, $YYYYMM, $YYYYMMDD, $YYYYMMDDHH or a range start", "$"+decorator)
	}
	if id == "" {
		return errors.New("is empty before its partition decorator")
	}
	for _, r := range id {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc, unicode.Pd, unicode.Zs) {
			return fmt.Errorf("has the character %q: expected letters, digits, underscores, hyphens and spaces", r)
		}
	}
	return nil
}

func partitionDecorator(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && !(c == '-' && i == 0 && len(s) > 1) {
			return false
		}
	}
	return true
}

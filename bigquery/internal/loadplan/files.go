package loadplan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// kind is what files have in common that one load job may take together; the profile is kept to tell copies of a committable from
// contradictions.
type kind struct {
	destination table.Destination
	format      Format
	profile     string
}

// file is what planning needs of a committable. There may be ten million.
type file struct {
	uri         string
	bytes, rows int64
	kind        int
}

// group is the files of one destination and format, in the order of their URIs.
type group struct {
	destination table.Destination
	path        string
	format      Format
	partitions  []partition
	files       int
}

// partition is the files of one load job.
type partition struct {
	uris        []string
	bytes, rows int64
}

// commit is what all committables of one commit agree on, and their files.
type commit struct {
	run        string
	checkpoint Checkpoint
	kinds      []kind
	files      []file
}

// collect reads the committables of a commit and checks each by itself and against the others' run, checkpoint and profile.
func collect(cfg Config, cs iter.Seq[Committable]) (*commit, error) {
	c := &commit{}
	profile := cfg.Profile()
	numbers := map[kind]int{}
	last, number := kind{}, -1
	for f := range cs {
		if err := c.admit(&f, cfg, profile); err != nil {
			return nil, err
		}
		k := kind{f.Destination, f.Format, f.Profile}
		if number < 0 || k != last {
			known := false
			if number, known = numbers[k]; !known {
				if err := checkKind(k); err != nil {
					return nil, fmt.Errorf("%w: %s: %w", ErrCommittable, f.URI, err)
				}
				number = len(c.kinds)
				numbers[k] = number
				c.kinds = append(c.kinds, k)
			}
			last = k
		}
		c.files = append(c.files, file{f.URI, f.Bytes, f.Rows, number})
	}
	return c, nil
}

func (c *commit) admit(f *Committable, cfg Config, profile string) error {
	if len(c.files) == 0 {
		c.run, c.checkpoint = f.Run, f.Checkpoint
		if err := checkRun(f); err != nil {
			return err
		}
	}
	if f.Run != c.run || f.Checkpoint != c.checkpoint {
		return fmt.Errorf("%w: run %s %s beside run %s %s: expected a commit of each, in ascending order", ErrMixedCommit,
			c.run, c.checkpoint, f.Run, f.Checkpoint)
	}
	if f.Profile != profile && !cfg.AllowProfileChange {
		return fmt.Errorf("%w: %s for %s was staged with profile %q, and the options now have %s: "+
			"with other ones its earlier jobs cannot be found and its rows may be loaded twice; "+
			"expected the job project, location, temporary project and dataset and write disposition of before, or AllowProfileChange",
			ErrCommitProfileChanged, f.URI, f.Destination, f.Profile, profile)
	}
	return checkFile(f)
}

func checkRun(f *Committable) error {
	for i := range len(f.Run) {
		if c := f.Run[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%w: run %q: expected 32 lowercase hexadecimal digits", ErrCommittable, f.Run)
		}
	}
	if len(f.Run) != 32 {
		return fmt.Errorf("%w: run %q: expected 32 lowercase hexadecimal digits", ErrCommittable, f.Run)
	}
	if f.Checkpoint.ID < 0 || !f.Checkpoint.Set && f.Checkpoint.ID != 0 {
		return fmt.Errorf("%w: checkpoint %d, set: %t: expected none or one from 0 on", ErrCommittable, f.Checkpoint.ID, f.Checkpoint.Set)
	}
	return nil
}

func checkKind(k kind) error {
	if _, known := parseFormat(k.format.String()); !known {
		return fmt.Errorf("its format is %s", k.format)
	}
	return CheckDestination(k.destination)
}

// CheckDestination refuses what cannot be a table's name, and what could be that of a temporary table: rows for it would be loaded
// into others' or be lost with it. A writer asks before it opens a file, since a commit that meets such a name can only fail.
func CheckDestination(d table.Destination) error {
	if len(d.Table) >= len(tempPrefix) && strings.EqualFold(d.Table[:len(tempPrefix)], tempPrefix) {
		return fmt.Errorf("%w: %q: names of temporary tables of file loads begin with %s", ErrReserved, d.String(), tempPrefix)
	}
	return d.Validate()
}

// checkFile refuses what would not name exactly one object: a pattern would load what others staged, and hashed lines must not run
// into each other.
func checkFile(f *Committable) error {
	bucket, object, found := strings.Cut(strings.TrimPrefix(f.URI, "gs://"), "/")
	if !strings.HasPrefix(f.URI, "gs://") || !found || bucket == "" || object == "" {
		return fmt.Errorf("%w: %q for %s: expected gs://bucket/object", ErrCommittable, f.URI, f.Destination)
	}
	for i := range len(f.URI) {
		if c := f.URI[i]; c < ' ' || c == 0x7f || c == '*' {
			return fmt.Errorf("%w: %q for %s has the character %q: expected the name of one object", ErrCommittable, f.URI, f.Destination, c)
		}
	}
	if f.Bytes < 0 || f.Rows < 0 {
		return fmt.Errorf("%w: %s for %s has %d bytes and %d rows", ErrCommittable, f.URI, f.Destination, f.Bytes, f.Rows)
	}
	return nil
}

// sorted puts the files in the order of their URIs and leaves one of each.
func (c *commit) sorted() error {
	slices.SortFunc(c.files, func(a, b file) int { return strings.Compare(a.uri, b.uri) })
	kept := c.files[:0]
	for _, f := range c.files {
		if n := len(kept); n == 0 || kept[n-1].uri != f.uri {
			kept = append(kept, f)
			continue
		}
		if before := kept[len(kept)-1]; before != f {
			return fmt.Errorf("%w: %s is %s and %s: expected one description of it", ErrDuplicateStagedFile, f.uri, c.describe(before), c.describe(f))
		}
	}
	c.files = kept
	return nil
}

func (c *commit) describe(f file) string {
	k := c.kinds[f.kind]
	return fmt.Sprintf("%d rows in %d bytes of %s for %s (profile %s)", f.rows, f.bytes, k.format, k.destination, k.profile)
}

// groups are the files by destination and format, in order, each filled into partitions.
func (c *commit) groups(lim Limits) []group {
	groups, of := c.grouped()
	for _, f := range c.files {
		groups[of[f.kind]].files++
	}
	uris := make([]string, len(c.files))
	rest := make([][]string, len(groups)) // where the next files of a group go
	for i := range groups {
		rest[i], uris = uris[:0:groups[i].files], uris[groups[i].files:]
	}
	for _, f := range c.files {
		i := of[f.kind]
		rest[i] = groups[i].add(rest[i], f, lim)
	}
	return groups
}

// grouped makes the groups, empty, and says which one each kind is in.
func (c *commit) grouped() (groups []group, of []int) {
	for _, k := range c.kinds {
		groups = append(groups, group{destination: k.destination, path: k.destination.Path(), format: k.format})
	}
	order := func(a, b group) int { return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.format, b.format)) }
	slices.SortFunc(groups, order)
	groups = slices.CompactFunc(groups, func(a, b group) bool { return order(a, b) == 0 })
	of = make([]int, len(c.kinds))
	for i, k := range c.kinds {
		of[i], _ = slices.BinarySearchFunc(groups, group{path: k.destination.Path(), format: k.format}, order)
	}
	return groups, of
}

// add puts the next file into the last partition, or into a new one when that is full. A file that is too large by itself is a
// partition of its own. all is the group's files so far.
func (g *group) add(all []string, f file, lim Limits) []string {
	all = append(all, f.uri)
	if n := len(g.partitions); n > 0 {
		if p := &g.partitions[n-1]; len(p.uris) < lim.FilesPerLoad && f.bytes <= lim.BytesPerLoad-p.bytes {
			p.uris = p.uris[:len(p.uris)+1] // the next one in all
			p.bytes, p.rows = p.bytes+f.bytes, p.rows+f.rows
			return all
		}
	}
	g.partitions = append(g.partitions, partition{all[len(all)-1:], f.bytes, f.rows})
	return all
}

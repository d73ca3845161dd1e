package loadplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// How many hexadecimal digits of a hash are in a name.
const (
	jobDigits   = 16
	tableDigits = 12
)

// tempPrefix begins the names of all temporary tables.
const tempPrefix = "millrace_tmp_"

// namer makes the names of one commit. What is hashed never has the checkpoint in it: that is in sight, in the name, to tell whose
// it is.
//
// The digits that a name has of a hash are few enough that whoever chooses names of tables can make two that are equal: the rows of
// one table would replace those of the other, or its copy pass for the other's. So each name is given out once: the second one gets
// all digits. Which one is second is up to the order of the plan, and so the same whenever these committables are planned.
type namer struct {
	cfg     Config
	run     string
	inJob   string // "-c42", "" without a checkpoint
	inTable string // "_c42"
	stamped bool
	ids     map[string]bool
	tables  map[table.Destination]bool

	sum     hash.Hash
	pending []byte // what is to be hashed next
}

func newNamer(cfg Config, run string, at Checkpoint) *namer {
	n := &namer{cfg: cfg, run: run, stamped: at.Set, ids: map[string]bool{}, tables: map[table.Destination]bool{}, sum: sha256.New()}
	if at.Set {
		id := strconv.FormatInt(at.ID, 10)
		n.inJob, n.inTable = "-c"+id, "_c"+id
	}
	return n
}

// pendingBytes is from where on texts go to the hash, so that 10,000 URIs are never in one piece.
const pendingBytes = 16 << 10

// add adds a line to what is hashed.
func (n *namer) add(parts ...string) {
	n.pending = append(n.pending, '\n')
	for _, s := range parts {
		n.pending = append(n.pending, s...)
	}
	if len(n.pending) >= pendingBytes {
		n.sum.Write(n.pending)
		n.pending = n.pending[:0]
	}
}

func (n *namer) addTables(tables []table.Destination) {
	for _, t := range tables {
		n.add("projects/", t.Project, "/datasets/", t.Dataset, "/tables/", t.Table)
	}
}

// begin starts a hash with its first line.
func (n *namer) begin(first string) {
	n.sum.Reset()
	n.pending = append(n.pending[:0], first...)
}

// digits ends a hash.
func (n *namer) digits() string {
	n.sum.Write(n.pending)
	n.pending = n.pending[:0]
	var sum [sha256.Size]byte
	return hex.EncodeToString(n.sum.Sum(sum[:0]))
}

// load is the id of a load job of these files. suffix tells the loads of a format into temporary tables apart.
func (n *namer) load(dst table.Destination, uris []string, suffix string) string {
	n.begin(dst.Path())
	for _, uri := range uris {
		n.add(uri)
	}
	return n.job("load", suffix)
}

// copying is the id of a copy job into its target. suffix tells those of the levels apart.
func (n *namer) copying(target table.Destination, sources []table.Destination, suffix string) string {
	n.begin(target.Path())
	n.addTables(sources)
	return n.job("copy", suffix)
}

// query is the id of the query that reads an aggregate into its destination.
func (n *namer) query(dst, aggregate table.Destination) string {
	n.begin(dst.Path())
	n.addTables([]table.Destination{aggregate})
	return n.job("query", "")
}

// leaves is what the names of the tables begin with that files of one format go to; the number of the load follows. With
// checkpoints the format is always in it, so that the name does not change at the first checkpoint with a second one.
func (n *namer) leaves(dst table.Destination, f Format, mixed bool) table.Destination {
	n.begin(dst.Path())
	if mixed || n.stamped {
		n.add(f.String())
	}
	return n.temp(dst, "_p")
}

// gathered is the table that a copy job makes out of others.
func (n *namer) gathered(dst table.Destination, sources []table.Destination, suffix string) table.Destination {
	n.begin(dst.Path())
	n.addTables(sources)
	return n.temp(dst, suffix)
}

// job makes an id of what was hashed.
func (n *namer) job(kind, suffix string) string {
	begin, digits := "millrace-bq-"+kind+"-"+n.run+n.inJob+"-", n.digits()
	id := begin + digits[:jobDigits] + suffix
	if n.ids[id] {
		id = begin + digits + suffix
	}
	n.ids[id] = true
	return id
}

// temp makes a temporary table for a destination of what was hashed.
func (n *namer) temp(dst table.Destination, suffix string) table.Destination {
	t := table.Destination{Project: cmp.Or(n.cfg.TempProject, dst.Project), Dataset: cmp.Or(n.cfg.TempDataset, dst.Dataset)}
	digits := n.digits()
	t.Table = tempPrefix + n.run + "_" + digits[:tableDigits] + n.inTable + suffix
	if n.tables[t] {
		t.Table = tempPrefix + n.run + "_" + digits + n.inTable + suffix
	}
	n.tables[t] = true
	return t
}

var quoted = strings.NewReplacer(`\`, `\\`, "`", "\\`", "\n", `\n`, "\r", `\r`)

// SelectAll is the query that reads a whole table.
func SelectAll(t table.Destination) string {
	return "SELECT * FROM `" + quoted.Replace(t.String()) + "`"
}

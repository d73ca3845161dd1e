package storageread

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
)

const (
	short     = "the block ends inside this value"
	badBranch = "the block ends here, or no branch of the nullable type has this number"
	badVarint = "the block ends inside this number, or it has more than 64 bits"
	badLength = "a length that is negative, or goes beyond the end of the block"
	null      = "is null where the reader's schema says REQUIRED"
)

// failAt remembers what is wrong and where; the records around it add their names to the path on the way out.
func (d *Decoder) failAt(i int, msg string) int {
	d.msg, d.at, d.path = msg, i, d.path[:0]
	return failed
}

func (d *Decoder) fail(s *step, i int, msg string) int {
	d.failAt(i, msg)
	return d.within(s)
}

func (d *Decoder) within(s *step) int {
	d.path = append(d.path, s.name)
	return failed
}

func (d *Decoder) withinElement(k int) int {
	d.path = append(d.path, "["+strconv.Itoa(k)+"]")
	return failed
}

func (d *Decoder) error() error {
	kind := row.KindDecode
	if d.msg == null {
		kind = row.KindNull
	}
	var path string
	for _, name := range slices.Backward(d.path) {
		if path != "" && !strings.HasPrefix(name, "[") {
			path += "."
		}
		path += name
	}
	return &row.Error{Kind: kind, Path: path, Offset: int64(d.at), Msg: d.msg}
}

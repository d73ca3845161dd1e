package writeapi

import (
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// streamName is a write stream's name, taken apart.
type streamName struct {
	full  string // as sent
	table store.TableRef
	id    string // "_default", or the id of a created stream
}

const defaultStream = "_default"

func (n streamName) isDefault() bool { return n.id == defaultStream }

// parseStream reads "T/streams/<id>" or "T/_default", T being "projects/p/datasets/d/tables/t". The default stream answers
// to both; the Java client sends the second.
func parseStream(s string) (streamName, bool) {
	cut := strings.LastIndexByte(s, '/')
	if cut < 0 {
		return streamName{}, false
	}
	path, id := s[:cut], s[cut+1:]
	path, created := strings.CutSuffix(path, "/streams")
	table, ok := store.ParseTablePath(path)
	n := streamName{full: s, table: table, id: id}
	return n, ok && id != "" && (created || n.isDefault())
}

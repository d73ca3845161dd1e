package fileload

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// namer names the objects of one writer. No two writers make the same name, were they of one lane and one attempt: what a dead one
// left behind is never named by anybody's commit.
type namer struct {
	prefix string // gs://bucket/prefix/run/
	writer string // lane, attempt, eight random digits
	seq    int64  // objects named so far, whatever became of them
}

func newNamer(cfg *Config) (*namer, error) {
	if len(cfg.Run) != 32 || strings.Trim(cfg.Run, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("stream.WriterContext.Run is %q: file loads need the id of the run, 32 lowercase hexadecimal digits, to name files by", cfg.Run)
	}
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("name staged files: %w", err)
	}
	n := &namer{
		prefix: cfg.Options.StagingPath + "/" + cfg.Run + "/",
		writer: fmt.Sprintf("%d-%d-%s", cfg.Lane, cfg.Attempt, hex.EncodeToString(random[:])),
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(n.prefix, "gs://"), "/")
	if longest := len(path) + folderBytes + len("/") + len(n.writer) + numberBytes; longest > nameBytes {
		return nil, misconfiguration{fmt.Errorf("StagingPath is too long: names of staged files could have %d bytes, and Cloud Storage takes %d", longest, nameBytes)}
	}
	return n, nil
}

const (
	nameBytes   = 1024 // of an object (Cloud Storage documentation, "Object naming guidelines")
	numberBytes = 51   // of "-", the number, and the extension of a format of one's own
)

// next is the URI of the next object.
func (n *namer) next(dst table.Destination, extension string) string {
	n.seq++
	return fmt.Sprintf("%s%s/%s-%d%s", n.prefix, folder(dst), n.writer, n.seq-1, extension)
}

// folderBytes leaves room for a long prefix.
const folderBytes = 256

// folder is project.dataset.table as part of an object's name. What is no letter, digit or one of _ - $ : becomes a tilde and two
// hexadecimal digits for each byte, and so do points within a part but the project: no two tables have one folder, and nothing in it
// is a pattern, a separator or an escape to anybody who reads URIs. A folder that would be long ends in a hash instead.
func folder(dst table.Destination) string {
	var b strings.Builder
	escape(&b, dst.Project, true)
	b.WriteByte('.')
	escape(&b, dst.Dataset, false)
	b.WriteByte('.')
	escape(&b, dst.Table, false)
	if b.Len() <= folderBytes {
		return b.String()
	}
	hash := sha256.Sum256([]byte(dst.Path()))
	// Two tildes stand in no other folder: one is always followed by digits.
	return b.String()[:folderBytes-66] + "~~" + hex.EncodeToString(hash[:])
}

func escape(b *strings.Builder, s string, points bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '$', c == ':', c == '.' && points:
			b.WriteByte(c)
		default:
			fmt.Fprintf(b, "~%02x", c)
		}
	}
}

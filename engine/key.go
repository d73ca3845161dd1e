package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A checkpoint's object is called <job>/<id>.checkpoint, the id with 19 digits, so that names sort as ids do.
const checkpointSuffix = ".checkpoint"

const idDigits = 19 // math.MaxInt64 has 19

func objectKey(job string, id int64) string {
	return jobFolder(job) + "/" + objectName(id)
}

func objectName(id int64) string {
	return fmt.Sprintf("%0*d%s", idDigits, id, checkpointSuffix)
}

// checkpointIDs returns the ids in the names of objects, sorted, passing over names that are not ours.
func checkpointIDs(names []string) []int64 {
	var ids []int64
	for _, name := range names {
		digits, ours := strings.CutSuffix(name, checkpointSuffix)
		id, err := strconv.ParseInt(digits, 10, 64)
		if ours && err == nil && id > 0 && objectName(id) == name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

const (
	maxPlainName = 64
	maxSlug      = 40
)

// jobFolder makes a folder's name of a job's. Names that are safe in every file system and bucket, also in those that
// do not tell upper from lower case, stay as they are; all others become what is legible of them, a tilde, and a hash.
// No safe name holds a tilde, so two names never share a folder.
func jobFolder(job string) string {
	if isPlain(job) {
		return job
	}
	sum := sha256.Sum256([]byte(job))
	return slug(job) + "~" + hex.EncodeToString(sum[:16])
}

func isPlain(job string) bool {
	if job == "" || len(job) > maxPlainName || job[0] == '-' {
		return false
	}
	for i := range len(job) {
		if !plainByte(job[i]) {
			return false
		}
	}
	return true
}

func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// slug is what a person may recognise a job by: never empty, never a path.
func slug(job string) string {
	b := []byte("job")
	for i := 0; i < len(job) && len(b) < maxSlug; i++ {
		c := job[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !plainByte(c) {
			c = '-'
		}
		if i == 0 {
			b = append(b, '-')
		}
		b = append(b, c)
	}
	return string(b)
}

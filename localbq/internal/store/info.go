package store

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Info is one state of a table's definition. Nobody changes it once it is published.
type Info struct {
	*schema.Definition
	Ref TableRef `json:"ref"`
	// Number counts the table's definitions from 0.
	Number int `json:"number"`
	// Version is the first version at which this definition is in force.
	Version int64 `json:"version"`
	// Change is what it did to the schema of the definition before it.
	Change   schema.Change `json:"change,omitzero"`
	ETag     string        `json:"etag"`
	Created  time.Time     `json:"created"`
	Modified time.Time     `json:"modified"` // of this definition; writes of rows do not count
}

// newInfo is the definition after previous, which is nil for a table's first.
func newInfo(ref TableRef, d *schema.Definition, previous *Info, version int64) *Info {
	at := TimeOf(version)
	info := &Info{Definition: d, Ref: ref, Version: version, Created: at, Modified: at, ETag: etag(version)}
	if previous != nil {
		info.Number = previous.Number + 1
		info.Created = previous.Created
	}
	return info
}

// etag is opaque and differs from version to version.
func etag(version int64) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(version)))
}

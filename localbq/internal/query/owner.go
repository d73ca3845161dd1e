package query

import (
	"crypto/sha256"
	"encoding/hex"
)

// AnonymousDataset is the hidden dataset that a principal's query results go to: "_" and forty hexadecimal digits.
func AnonymousDataset(principal, project string) string {
	sum := sha256.Sum256([]byte(project + "\x00" + principal))
	return "_" + hex.EncodeToString(sum[:20])
}

// Anonymous reports whether a dataset is one of those.
func Anonymous(dataset string) bool {
	if len(dataset) != 41 || dataset[0] != '_' {
		return false
	}
	_, err := hex.DecodeString(dataset[1:])
	return err == nil
}

// MayRead reports whether a principal may read a dataset's tables: anonymous results are for whoever asked the query.
func MayRead(principal, project, dataset string) bool {
	return !Anonymous(dataset) || dataset == AnonymousDataset(principal, project)
}

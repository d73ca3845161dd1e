package query

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Anonymous datasets are named "_", 32 hexadecimal digits for principal and project, and 8 for the location.
const (
	ownerDigits    = 32
	locationDigits = 8
)

// AnonymousDataset is the hidden dataset that a principal's query results in a location go to.
func AnonymousDataset(principal, project, location string) string {
	return "_" + owner(principal, project) + digest(strings.ToLower(location))[:locationDigits]
}

func owner(principal, project string) string {
	return digest(project + "\x00" + principal)[:ownerDigits]
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Anonymous reports whether a dataset is one of those.
func Anonymous(dataset string) bool {
	if len(dataset) != 1+ownerDigits+locationDigits || dataset[0] != '_' {
		return false
	}
	_, err := hex.DecodeString(dataset[1:])
	return err == nil
}

// MayRead reports whether a principal may read a dataset's tables: anonymous results are for whoever asked the query.
func MayRead(principal, project, dataset string) bool {
	return !Anonymous(dataset) || dataset[1:1+ownerDigits] == owner(principal, project)
}

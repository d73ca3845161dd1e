package rest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// treatment is what becomes of a field of a request.
type treatment uint8

const (
	kept    treatment = iota + 1 // read
	ignored                      // written by BigQuery alone, or without effect there
)

// fields are the fields of one kind of request that may be sent.
type fields map[string]treatment

// fieldsOf makes one from two lists of names.
func fieldsOf(keep, ignore string) fields {
	f := fields{}
	for name := range strings.FieldsSeq(keep) {
		f[name] = kept
	}
	for name := range strings.FieldsSeq(ignore) {
		f[name] = ignored
	}
	return f
}

// check refuses an object that has a field this service does not know to honour, naming the first by alphabet. Unset
// values (null, false, "", 0, [] and {}) ask for nothing and pass.
func (f fields) check(object map[string]json.RawMessage, where string) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if f[name] == 0 && !unset(object[name]) {
			return refusal.New(refusal.NotImplemented, "local BigQuery does not implement %s.%s", where, name)
		}
	}
	return nil
}

func unset(value json.RawMessage) bool {
	switch strings.TrimSpace(string(value)) {
	case "null", "false", `""`, "0", `"0"`, "[]", "{}":
		return true
	}
	return false
}

// keep is the part of an object that is read.
func (f fields) keep(object map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range object {
		if f[name] == kept {
			out[name] = value
		}
	}
	return out
}

// merge applies a patch to a resource: null removes, an object under one of the names in deep is merged into what is there,
// everything else replaces.
func merge(into, patch map[string]json.RawMessage, deep ...string) error {
	for name, value := range patch {
		switch {
		case string(value) == "null":
			delete(into, name)
		case slices.Contains(deep, name) && into[name] != nil:
			var old, change map[string]json.RawMessage
			if err := decode(into[name], &old); err != nil {
				return err
			}
			if err := decode(value, &change); err != nil {
				return err
			}
			if err := merge(old, change); err != nil {
				return err
			}
			merged, err := json.Marshal(old)
			if err != nil {
				return err
			}
			into[name] = merged
		default:
			into[name] = value
		}
	}
	return nil
}

// recast is v as another type with the same JSON.
func recast(v, out any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return decode(raw, out)
}

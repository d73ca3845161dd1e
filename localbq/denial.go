package localbq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"unicode"
)

// Denial refuses one caller one permission on one resource. Empty fields match everything.
type Denial struct {
	// Principal is who the bearer token "local:<principal>" names; without a token it is anonymous@local.
	Principal string `json:"principal,omitempty"`
	// Permission is one of IAM, such as bigquery.tables.updateData, whichever way it is used; or the name that the Storage Write
	// API has for it, TABLES_GET or TABLES_UPDATE_DATA, and only calls of that API are refused.
	Permission string `json:"permission,omitempty"`
	// Resource is "projects/p/datasets/d/tables/t", or what that is in: a dataset, a project.
	Resource string `json:"resource,omitempty"`
}

// ParseDenials reads a JSON array of denials or a single one, and refuses what would never refuse anybody.
func ParseDenials(b []byte) ([]Denial, error) {
	var read []*Denial
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	target := any(&read)
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		read = make([]*Denial, 1)
		target = &read[0]
	}
	if err := d.Decode(target); err != nil {
		return nil, fmt.Errorf("denials: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("denials: there is more behind them: expected one denial or one array")
	}
	all := make([]Denial, len(read))
	for i, d := range read {
		if d == nil {
			return nil, fmt.Errorf("denials: %d: is null: expected an object", i)
		}
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("denials: %d: %w", i, err)
		}
		all[i] = *d
	}
	return all, nil
}

var (
	permissionNames = regexp.MustCompile(`^(bigquery\.[a-z][a-zA-Z]*\.[a-z][a-zA-Z]*|[A-Z]+(_[A-Z]+)*)$`)
	resourceNames   = regexp.MustCompile(`^projects/[^/]+(/datasets/[^/]+(/tables/[^/]+)?)?$`)
)

func (d Denial) check() error {
	switch {
	case d.Permission != "" && !permissionNames.MatchString(d.Permission):
		return fmt.Errorf("permission %q: expected one such as bigquery.tables.updateData", d.Permission)
	case d.Resource != "" && !resourceNames.MatchString(d.Resource):
		return fmt.Errorf("resource %q: expected projects/p, projects/p/datasets/d or projects/p/datasets/d/tables/t", d.Resource)
	}
	return nil
}

func (d Denial) matches(principal, permission, resource string) bool {
	return (d.Principal == "" || d.Principal == principal) &&
		(d.Permission == "" || d.Permission == permission || storagePermission(d.Permission) == permission) &&
		(d.Resource == "" || d.Resource == resource || strings.HasPrefix(resource, d.Resource+"/"))
}

// storagePermission is what the Storage APIs call a permission of IAM: TABLES_UPDATE_DATA for bigquery.tables.updateData.
func storagePermission(permission string) string {
	name, ok := strings.CutPrefix(permission, "bigquery.")
	if !ok {
		return permission
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '.':
			r = '_'
		case unicode.IsUpper(r):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// denials are those in force.
type denials struct{ list atomic.Pointer[[]Denial] }

func (d *denials) all() []Denial {
	if l := d.list.Load(); l != nil {
		return *l
	}
	return nil
}

func (d *denials) set(all []Denial) { d.list.Store(&all) }

// denied is what the faces ask.
func (d *denials) denied(principal, permission, resource string) bool {
	for _, d := range d.all() {
		if d.matches(principal, permission, resource) {
			return true
		}
	}
	return false
}

// SetDenials makes these the callers that are refused, in place of those before; Config.Deny is what an instance starts with.
// A call that is under way may have passed already.
func (i *Instance) SetDenials(all ...Denial) error {
	for _, d := range all {
		if err := d.check(); err != nil {
			return fmt.Errorf("local BigQuery: denial: %w", err)
		}
	}
	i.denials.set(all)
	return nil
}

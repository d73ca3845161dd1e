package objects

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// bucketName is one to many components of letters, digits, dashes and underscores, that begin and end with a letter or a
// digit (Cloud Storage documentation, "Bucket naming guidelines").
var bucketName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)*$`)

func checkBucketName(name string) error {
	_, notAddress := netip.ParseAddr(name)
	if len(name) < 3 || len(name) > 222 || !strings.Contains(name, ".") && len(name) > 63 || !bucketName.MatchString(name) ||
		notAddress == nil || strings.HasPrefix(name, "goog") || strings.Contains(name, "google") {
		return refusal.New(refusal.Invalid, "Invalid bucket name: '%s'", name)
	}
	return nil
}

// maxNameBytes is the length of the longest name of an object (Cloud Storage documentation, "Object naming").
const maxNameBytes = 1024

func checkName(name string) error {
	switch {
	case name == "":
		return refusal.New(refusal.Required, "Required parameter: name")
	case len(name) > maxNameBytes:
		return refusal.New(refusal.Invalid, "The maximum object length is %d characters, but got a name with %d characters.", maxNameBytes, len(name))
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n") || name == "." || name == ".." ||
		strings.HasPrefix(name, ".well-known/acme-challenge/"):
		return refusal.New(refusal.Invalid, "Disallowed unicode characters present in object name %q", name)
	}
	return nil
}

package objects

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// maxPage is the most entries of a page (Cloud Storage documentation, objects.list, maxResults).
const maxPage = 1000

// Query says which objects to list.
type Query struct {
	Prefix string
	// Delimiter folds the names that have it behind the prefix into one entry, which ends with it; "" folds none.
	Delimiter string
	// StartOffset is the first name wanted, EndOffset the first that is not; "" is no bound.
	StartOffset, EndOffset string
	// MaxResults bounds the entries of the page; 0 is 1,000, as is everything above.
	MaxResults int
	// PageToken is where the page before ended.
	PageToken string
}

// Page is some of a listing, by name.
type Page struct {
	Objects  []Object
	Prefixes []string
	// Next is the token of the next page; "" on the last.
	Next string
}

// Page lists a bucket. What was acknowledged before is in it.
func (s *Store) Page(bucket string, q Query) (Page, error) {
	if q.MaxResults <= 0 || q.MaxResults > maxPage {
		q.MaxResults = maxPage
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, err := s.bucket(bucket)
	if err != nil {
		return Page{}, err
	}
	at, _ := b.find(max(q.Prefix, q.StartOffset))
	if q.PageToken != "" {
		last, err := base64.RawURLEncoding.DecodeString(q.PageToken)
		if err != nil || len(last) == 0 {
			return Page{}, &refusal.Error{Reason: refusal.Invalid, Location: "pageToken", Message: "Invalid Value"}
		}
		at = max(at, b.behind(string(last), q))
	}
	return b.page(at, q, s.hides), nil
}

// behind is where a listing goes on whose last entry was given.
func (b *bucket) behind(last string, q Query) int {
	at, found := b.find(last)
	if q.fold(last) == last {
		return b.skip(at, last)
	}
	if found {
		at++
	}
	return at
}

// fold is the entry that a name is folded into, "" for none.
func (q *Query) fold(name string) string {
	rest, ok := strings.CutPrefix(name, q.Prefix)
	if !ok || q.Delimiter == "" {
		return ""
	}
	n := strings.Index(rest, q.Delimiter)
	if n < 0 {
		return ""
	}
	return name[:len(q.Prefix)+n+len(q.Delimiter)]
}

// skip is the first place from at on whose name does not begin with prefix.
func (b *bucket) skip(at int, prefix string) int {
	n, _ := slices.BinarySearchFunc(b.objects[at:], prefix, func(o *Object, prefix string) int {
		if strings.HasPrefix(o.Name, prefix) {
			return -1
		}
		return 1
	})
	return at + n
}

func (b *bucket) page(at int, q Query, hides func(*Object) bool) (p Page) {
	last := ""
	for n := 0; at < len(b.objects); {
		o := b.objects[at]
		if !strings.HasPrefix(o.Name, q.Prefix) || q.EndOffset != "" && o.Name >= q.EndOffset {
			break
		}
		if hides(o) {
			at++
			continue
		}
		if n == q.MaxResults {
			p.Next = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		n++
		if prefix := q.fold(o.Name); prefix != "" {
			p.Prefixes, last = append(p.Prefixes, prefix), prefix
			at = b.skip(at, prefix)
			continue
		}
		p.Objects, last = append(p.Objects, o.clone()), o.Name
		at++
	}
	return p
}

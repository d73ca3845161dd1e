// Package mask is partial answers: the fields parameter that Google's JSON APIs have.
package mask

import (
	"encoding/json"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Mask is a parsed fields parameter: a,b/c,d(e,f/g),* names what of an answer is wanted. A nil mask wants everything.
type Mask map[string]Mask

// Parse reads a fields parameter (Google API documentation, "Partial response").
func Parse(text string) (Mask, error) {
	p := parser{rest: text}
	m := Mask{}
	err := p.list(m)
	if err == nil && p.rest != "" {
		err = p.fault()
	}
	return m, err
}

type parser struct {
	rest  string
	depth int
}

func (p *parser) fault() error {
	return &refusal.Error{Reason: refusal.Invalid, Location: "fields", Message: "Invalid field selection " + p.rest}
}

func (p *parser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *parser) list(m Mask) error {
	for {
		if err := p.path(m); err != nil {
			return err
		}
		if !p.take(',') {
			return nil
		}
	}
}

// path reads a, a/b or a(…) into m.
func (p *parser) path(m Mask) (err error) {
	n := strings.IndexAny(p.rest, "/(),")
	if n < 0 {
		n = len(p.rest)
	}
	name := strings.TrimSpace(p.rest[:n])
	if p.depth++; name == "" || p.depth > 100 {
		return p.fault()
	}
	defer func() { p.depth-- }()
	p.rest = p.rest[n:]
	inner, known := m[name]
	whole := known && inner == nil
	if inner == nil {
		inner = Mask{}
	}
	switch {
	case p.take('/'):
		err = p.path(inner)
	case p.take('('):
		if err = p.list(inner); err == nil && !p.take(')') {
			err = p.fault()
		}
	default:
		whole = true
	}
	if whole {
		inner = nil
	}
	m[name] = inner
	return err
}

// Apply keeps of a JSON text what the mask wants. Parts that are wanted whole are not parsed.
func (m Mask) Apply(body []byte) ([]byte, error) {
	if m == nil {
		return body, nil
	}
	switch {
	case len(body) > 0 && body[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = m.Apply(list[i]); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	case len(body) > 0 && body[0] == '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err != nil {
			return nil, err
		}
		kept := make(map[string]json.RawMessage, len(m))
		for name, value := range object {
			sub, ok := m[name]
			if !ok {
				if sub, ok = m["*"]; !ok {
					continue
				}
			}
			var err error
			if kept[name], err = sub.Apply(value); err != nil {
				return nil, err
			}
		}
		return json.Marshal(kept)
	}
	return body, nil
}

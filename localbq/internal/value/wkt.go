package value

import (
	"fmt"
	"strconv"
	"strings"
)

const maxGeometryDepth = 32

// wkt reads well-known text from the front.
type wkt struct{ rest string }

func (p *wkt) geometry(depth int) (*geometry, error) {
	if depth > maxGeometryDepth {
		return nil, fmt.Errorf("collections are nested deeper than %d", maxGeometryDepth)
	}
	g := &geometry{kind: strings.ToUpper(p.word())}
	levels, known := depths[g.kind]
	if !known && g.kind != collection {
		return nil, fmt.Errorf("unknown geometry %q", g.kind)
	}
	if p.empty() {
		return g, nil
	}
	var err error
	switch g.kind {
	case collection:
		g.parts, err = p.parts(depth)
	case "POINT":
		g.coords, err = p.bracketed(func() (*coords, error) { return p.point(false) })
	default:
		g.coords, err = p.list(levels, g.kind == "MULTIPOINT")
	}
	return g, err
}

func (p *wkt) word() string {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	i := 0
	for i < len(p.rest) && (p.rest[i]|0x20 >= 'a' && p.rest[i]|0x20 <= 'z') {
		i++
	}
	word := p.rest[:i]
	p.rest = p.rest[i:]
	return word
}

func (p *wkt) empty() bool {
	before := p.rest
	if strings.EqualFold(p.word(), "EMPTY") {
		return true
	}
	p.rest = before
	return false
}

func (p *wkt) char(c byte) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *wkt) parts(depth int) ([]*geometry, error) {
	if !p.char('(') {
		return nil, p.expected("(")
	}
	var out []*geometry
	for {
		g, err := p.geometry(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
		if p.char(')') {
			return out, nil
		}
		if !p.char(',') {
			return nil, p.expected(", or )")
		}
	}
}

func (p *wkt) expected(what string) error {
	if p.rest == "" {
		return fmt.Errorf("expected %s before the end of the text", what)
	}
	return fmt.Errorf("expected %s before %.20q", what, p.rest)
}

func (p *wkt) bracketed(inner func() (*coords, error)) (*coords, error) {
	if !p.char('(') {
		return nil, p.expected("(")
	}
	c, err := inner()
	if err == nil && !p.char(')') {
		err = p.expected(")")
	}
	return c, err
}

// list reads "(…, …)" of lists of one level less, or of points.
func (p *wkt) list(levels int, loosePoints bool) (*coords, error) {
	if levels == 0 {
		return p.point(loosePoints)
	}
	return p.bracketed(func() (*coords, error) {
		c := &coords{}
		for {
			member, err := p.list(levels-1, loosePoints)
			if err != nil {
				return nil, err
			}
			c.list = append(c.list, member)
			if !p.char(',') {
				return c, nil
			}
		}
	})
}

// point reads "x y", in brackets of its own if they are allowed.
func (p *wkt) point(brackets bool) (*coords, error) {
	if brackets && p.char('(') {
		c, err := p.point(false)
		if err == nil && !p.char(')') {
			err = p.expected(")")
		}
		return c, err
	}
	c := &coords{}
	for i := range c.point {
		p.rest = strings.TrimLeft(p.rest, " \t\r\n")
		end := strings.IndexAny(p.rest, " \t\r\n,()")
		if end < 0 {
			end = len(p.rest)
		}
		v, err := strconv.ParseFloat(p.rest[:end], 64)
		if err != nil {
			return nil, p.expected("a coordinate")
		}
		c.point[i], p.rest = v, p.rest[end:]
	}
	return c, checkPoint(c.point)
}

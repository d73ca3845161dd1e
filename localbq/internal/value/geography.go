package value

import (
	"fmt"
	"strconv"
	"strings"
)

// Geography reads WKT or GeoJSON and returns WKT in one spelling: upper-case names, one space, no leading zeros. It
// checks syntax and the ranges of coordinates; it does not check that rings close or that edges do not cross.
func Geography(s string) (string, error) {
	trimmed := strings.TrimSpace(s)
	var shape *geometry
	var err error
	if strings.HasPrefix(trimmed, "{") {
		shape, err = parseGeoJSON([]byte(trimmed), 0)
	} else {
		p := wkt{rest: trimmed}
		if shape, err = p.geometry(0); err == nil && strings.TrimSpace(p.rest) != "" {
			err = fmt.Errorf("unexpected %q after the geometry", p.rest)
		}
	}
	if err != nil {
		return "", fmt.Errorf("Invalid geography value: %w", err)
	}
	return string(shape.append(nil)), nil
}

// geometry is a shape: a tree of lists of points of the depth its kind says, or of geometries.
type geometry struct {
	kind   string
	coords *coords     // nil is EMPTY
	parts  []*geometry // of a GEOMETRYCOLLECTION
}

// coords is a point, or a list of coords.
type coords struct {
	point [2]float64
	list  []*coords
}

// depths say how many lists surround the points of a kind.
var depths = map[string]int{
	"POINT": 0, "LINESTRING": 1, "MULTIPOINT": 1, "POLYGON": 2, "MULTILINESTRING": 2, "MULTIPOLYGON": 3,
}

const collection = "GEOMETRYCOLLECTION"

func (g *geometry) append(dst []byte) []byte {
	dst = append(dst, g.kind...)
	switch {
	case g.kind == collection && len(g.parts) > 0:
		dst = append(dst, '(')
		for i, part := range g.parts {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = part.append(dst)
		}
		return append(dst, ')')
	case g.coords == nil:
		return append(dst, " EMPTY"...)
	case g.kind == "POINT":
		return append(g.coords.append(append(dst, '(')), ')')
	}
	return g.coords.append(dst)
}

func (c *coords) append(dst []byte) []byte {
	if c.list == nil {
		dst = strconv.AppendFloat(dst, c.point[0], 'g', -1, 64)
		return strconv.AppendFloat(append(dst, ' '), c.point[1], 'g', -1, 64)
	}
	dst = append(dst, '(')
	for i, member := range c.list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = member.append(dst)
	}
	return append(dst, ')')
}

func checkPoint(p [2]float64) error {
	if !(p[1] >= -90 && p[1] <= 90) {
		return fmt.Errorf("latitude %v is not between -90 and 90 degrees", p[1])
	}
	if !(p[0] >= -1e9 && p[0] <= 1e9) {
		return fmt.Errorf("longitude %v is out of range", p[0])
	}
	return nil
}

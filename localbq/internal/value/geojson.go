package value

import (
	"encoding/json"
	"fmt"
	"strings"
)

func parseGeoJSON(text []byte, depth int) (*geometry, error) {
	if depth > maxGeometryDepth {
		return nil, fmt.Errorf("collections are nested deeper than %d", maxGeometryDepth)
	}
	var g struct {
		Type        string            `json:"type"`
		Coordinates json.RawMessage   `json:"coordinates"`
		Geometries  []json.RawMessage `json:"geometries"`
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return nil, fmt.Errorf("not GeoJSON: %w", err)
	}
	out := &geometry{kind: strings.ToUpper(g.Type)}
	if out.kind == collection {
		for _, member := range g.Geometries {
			part, err := parseGeoJSON(member, depth+1)
			if err != nil {
				return nil, err
			}
			out.parts = append(out.parts, part)
		}
		return out, nil
	}
	levels, known := depths[out.kind]
	if !known {
		return nil, fmt.Errorf("unknown geometry type %q", g.Type)
	}
	var err error
	out.coords, err = geoCoords(g.Coordinates, levels)
	return out, err
}

func geoCoords(raw json.RawMessage, levels int) (*coords, error) {
	if levels == 0 {
		var point []float64
		if err := json.Unmarshal(raw, &point); err != nil || len(point) < 2 {
			return nil, fmt.Errorf("expected [longitude, latitude], got %.40s", raw)
		}
		c := &coords{point: [2]float64{point[0], point[1]}}
		return c, checkPoint(c.point)
	}
	var members []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, fmt.Errorf("expected an array of coordinates, got %.40s", raw)
	}
	if len(members) == 0 {
		return nil, nil
	}
	out := &coords{}
	for _, m := range members {
		c, err := geoCoords(m, levels-1)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, fmt.Errorf("empty list of coordinates")
		}
		out.list = append(out.list, c)
	}
	return out, nil
}

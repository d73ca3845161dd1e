package fault

import "strings"

// agrees compares everything of a match but its counts.
func (m *Match) agrees(c Call) bool {
	return (m.Service == "" || m.Service == c.Service) &&
		(m.Method == "" || m.Method == c.Method) &&
		(m.Table == "" || sameTable(m.Table, c.Table)) &&
		(m.Stream == "" || m.Stream == c.Stream) &&
		(m.Object == "" || m.Object == c.Object) &&
		(m.StreamKind == "" || m.StreamKind == c.StreamKind) &&
		(m.Principal == "" || m.Principal == c.Principal) &&
		(m.TraceID == "" || m.TraceID == c.TraceID) &&
		(m.MinRows == 0 || c.Rows >= m.MinRows) &&
		(m.MaxRows == 0 || c.Rows <= m.MaxRows)
}

// sameTable compares a table as a rule spells it with a resource name.
func sameTable(name, path string) bool {
	if name == path || path == "" {
		return name == path
	}
	parts := strings.Split(path, "/") // projects/p/datasets/d/tables/t
	if len(parts) != 6 {
		return false
	}
	short := parts[3] + "." + parts[5]
	return name == short || name == parts[1]+"."+short
}

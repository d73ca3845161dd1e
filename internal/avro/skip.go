package avro

// maxDepth is how deeply a datum of a schema that contains itself may nest, so that hostile bytes do not exhaust the stack.
const maxDepth = 1000

type zeroness uint8

const (
	zeroUnknown zeroness = iota
	zeroBusy
	zeroYes
	zeroNo
)

// Prepare works out what Skip needs, for a schema that several goroutines will use.
func (s *Schema) Prepare() {
	seen := map[*Schema]bool{}
	s.walk(seen, func(n *Schema) { n.empty() })
}

func (s *Schema) walk(seen map[*Schema]bool, visit func(*Schema)) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	visit(s)
	for _, b := range s.Branches {
		b.walk(seen, visit)
	}
	for i := range s.Fields {
		s.Fields[i].Type.walk(seen, visit)
	}
	s.Items.walk(seen, visit)
	s.Values.walk(seen, visit)
}

// empty says whether values take no bytes at all. Whatever takes any, takes at least one always.
func (s *Schema) empty() bool {
	switch s.zero {
	case zeroYes:
		return true
	case zeroNo, zeroBusy:
		return false
	}
	s.zero = zeroBusy
	yes := s.Kind == Null || s.Kind == Fixed && s.Size == 0
	if s.Kind == Record {
		yes = true
		for i := range s.Fields {
			yes = s.Fields[i].Type.empty() && yes
		}
	}
	if s.zero = zeroNo; yes {
		s.zero = zeroYes
	}
	return yes
}

// Empty says whether values take no bytes at all, such as those of null. Prepare must have been called.
func (s *Schema) Empty() bool { return s.zero == zeroYes }

// Skip passes over a datum at b[i:] and returns the index behind it, or Failed where the bytes are none. Prepare must have been
// called. It takes time proportional to the bytes.
func (s *Schema) Skip(b []byte, i int) int { return s.skip(b, i, 0) }

func (s *Schema) skip(b []byte, i, depth int) int {
	switch s.Kind {
	case Null:
		return i
	case Boolean:
		return within(b, i, 1)
	case Int, Long, Enum:
		_, next := Varint(b, i)
		return next
	case Float:
		return within(b, i, 4)
	case Double:
		return within(b, i, 8)
	case Fixed:
		return within(b, i, s.Size)
	case Bytes, String:
		n, next := Length(b, i)
		return next + n
	}
	if s.zero == zeroYes {
		return i
	}
	if depth++; depth > maxDepth {
		return Failed
	}
	switch s.Kind {
	case Record:
		for k := range s.Fields {
			if i = s.Fields[k].Type.skip(b, i, depth); i < 0 {
				return Failed
			}
		}
		return i
	case Union:
		u, next := Varint(b, i)
		if branch := Zigzag(u); next >= 0 && branch >= 0 && branch < int64(len(s.Branches)) {
			return s.Branches[branch].skip(b, next, depth)
		}
		return Failed
	case Array:
		return skipBlocks(b, i, depth, nil, s.Items)
	}
	return skipBlocks(b, i, depth, key, s.Values)
}

// key is the type of a map's keys.
var key = &Schema{Kind: String, zero: zeroNo}

// within passes over n bytes that have to be there.
func within(b []byte, i, n int) int {
	if n > len(b)-i {
		return Failed
	}
	return i + n
}

// skipBlocks passes over the blocks of an array, or of a map where keys is not nil.
func skipBlocks(b []byte, i, depth int, keys, items *Schema) int {
	for {
		n, size, next := Count(b, i)
		switch {
		case next < 0:
			return Failed
		case n == 0:
			return next
		case size >= 0:
			if size > int64(len(b)-next) {
				return Failed
			}
			i = next + int(size)
			continue
		}
		if i = next; keys == nil && items.Empty() {
			continue
		}
		for ; n > 0; n-- {
			if keys != nil {
				if i = keys.skip(b, i, depth); i < 0 {
					return Failed
				}
			}
			if i = items.skip(b, i, depth); i < 0 {
				return Failed
			}
		}
	}
}

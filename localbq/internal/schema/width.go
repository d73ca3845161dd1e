package schema

// MostValues is how many values the rows of one request may have in all, NULLs included: a gigabyte of numbers. Such rows come
// in little, as one that is empty has as many values as its table has columns.
const MostValues = 1 << 27

// Width is how many values a row has that carries none.
func (s *Schema) Width() int64 {
	if s == nil {
		return 0
	}
	return width(s.Fields)
}

func width(fields []*Field) (n int64) {
	for _, f := range fields {
		if n++; f.Mode != Repeated {
			n += width(f.Fields)
		}
	}
	return n
}

package row

// AppendQuoted appends text, which must be UTF-8, as a JSON string.
func AppendQuoted[S Text](buf []byte, text S) []byte {
	const digits = "0123456789abcdef"
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		buf = append(buf, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\r':
			buf = append(buf, '\\', 'r')
		case '\t':
			buf = append(buf, '\\', 't')
		default:
			buf = append(buf, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	buf = append(buf, text[start:]...)
	return append(buf, '"')
}

package jsonrow

import "unicode/utf8"

// unescape appends the characters that the content of a checked string stands for.
func unescape(buf, content []byte) []byte {
	for i := 0; i < len(content); {
		c := content[i]
		if c != '\\' {
			end := i + 1
			for end < len(content) && content[end] != '\\' {
				end++
			}
			buf = append(buf, content[i:end]...)
			i = end
			continue
		}
		switch c = content[i+1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(content, i+2)
			i += 6
			if r >= 0xd800 && r <= 0xdfff {
				low, _ := lowSurrogate(content, i)
				r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
				i += 6
			}
			buf = utf8.AppendRune(buf, r)
			continue
		}
		buf = append(buf, c)
		i += 2
	}
	return buf
}

// appendCompact appends a checked value's text without the white space between its tokens.
func appendCompact(buf, text []byte) []byte {
	inString := false
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && c <= ' ':
			buf = append(buf, text[start:i]...)
			start = i + 1
		}
	}
	return append(buf, text[start:]...)
}

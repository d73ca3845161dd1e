package scalar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/value"
)

// JSON values are texts in normal form: no space, as the store holds them.

// ParseJSON makes the normal form.
func ParseJSON(s string) (string, error) {
	out, err := value.AppendJSON(nil, []byte(s))
	if err != nil {
		return "", fmt.Errorf("Invalid input to PARSE_JSON: %w", err)
	}
	return string(out), nil
}

// JSONType is the type's name in lower case.
func JSONType(doc string) (string, error) {
	switch {
	case doc == "":
		return "", fmt.Errorf("empty JSON")
	case doc[0] == '{':
		return "object", nil
	case doc[0] == '[':
		return "array", nil
	case doc[0] == '"':
		return "string", nil
	case doc == "null":
		return "null", nil
	case doc == "true", doc == "false":
		return "boolean", nil
	}
	return "number", nil
}

// elements are the elements of an array; false for anything else.
func elements(doc string) ([]json.RawMessage, bool) {
	if !strings.HasPrefix(doc, "[") {
		return nil, false
	}
	list := []json.RawMessage{}
	return list, json.Unmarshal([]byte(doc), &list) == nil
}

// JSONElements are the elements of an array; nil, which is NULL, for anything else.
func JSONElements(doc string) ([]string, error) {
	var list []json.RawMessage
	if !strings.HasPrefix(doc, "[") || json.Unmarshal([]byte(doc), &list) != nil {
		return nil, nil
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = string(e)
	}
	return out, nil
}

// JSONStrings are the scalar elements of an array as text; nil, which is NULL, for anything else.
func JSONStrings(doc string) ([]string, error) {
	list, ok := elements(doc)
	if !ok {
		return nil, nil
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		if e[0] == '{' || e[0] == '[' || string(e) == "null" {
			continue
		}
		s := string(e)
		if e[0] == '"' {
			if err := json.Unmarshal(e, &s); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// JSONKeys are all paths to members, "a" and "a.b", sorted.
func JSONKeys(doc string) ([]string, error) {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return nil, err
	}
	out := []string{}
	collectKeys(&out, "", v)
	return out, nil
}

func collectKeys(out *[]string, prefix string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, key := range sortedKeys(m) {
		path := key
		if strings.ContainsAny(key, `."`) {
			path = strconv.Quote(key)
		}
		*out = append(*out, prefix+path)
		collectKeys(out, prefix+path+".", m[key])
	}
}

// Conversions that take one JSON type.

func mismatch(doc, want string) error {
	t, err := JSONType(doc)
	if err != nil {
		return err
	}
	return fmt.Errorf("The provided JSON input is not %s: it is of type %s", want, t)
}

func JSONToString(doc string) (string, error) {
	var s string
	if !strings.HasPrefix(doc, `"`) || json.Unmarshal([]byte(doc), &s) != nil {
		return "", mismatch(doc, "a string")
	}
	return s, nil
}

func JSONToBool(doc string) (bool, error) {
	if doc != "true" && doc != "false" {
		return false, mismatch(doc, "a boolean")
	}
	return doc == "true", nil
}

func JSONToInt(doc string) (int64, error) {
	if n, err := strconv.ParseInt(doc, 10, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(doc, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 0x1p63 {
		return int64(f), nil
	}
	return 0, mismatch(doc, "an integer")
}

func JSONToFloat(doc string) (float64, error) {
	f, err := strconv.ParseFloat(doc, 64)
	if err != nil {
		return 0, mismatch(doc, "a number")
	}
	return f, nil
}

// Conversions that take what can be converted; false, which is NULL, for the rest.

func LaxString(doc string) (string, bool, error) {
	if s, err := JSONToString(doc); err == nil {
		return s, true, nil
	}
	t, _ := JSONType(doc)
	return doc, t == "number" || t == "boolean", nil
}

func LaxInt(doc string) (int64, bool, error) {
	text, ok, _ := LaxString(doc)
	if !ok {
		return 0, false, nil
	}
	if text == "true" || text == "false" {
		return map[string]int64{"true": 1}[text], true, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if n, intErr := strconv.ParseInt(text, 10, 64); intErr == nil {
		return n, true, nil
	}
	if err != nil || math.Abs(f) >= 0x1p63 || math.IsNaN(f) {
		return 0, false, nil
	}
	return int64(math.Round(f)), true, nil
}

func LaxFloat(doc string) (float64, bool, error) {
	text, ok, _ := LaxString(doc)
	if !ok || text == "true" || text == "false" {
		return 0, false, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil, nil
}

func LaxBool(doc string) (bool, bool, error) {
	text, ok, _ := LaxString(doc)
	if !ok {
		return false, false, nil
	}
	switch strings.ToLower(text) {
	case "true":
		return true, true, nil
	case "false":
		return false, true, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return f != 0, err == nil && !strings.HasPrefix(doc, `"`), nil
}

// Indent is a JSON text over several lines, as TO_JSON_STRING(x, TRUE) writes it.
func Indent(doc string) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, []byte(doc), "", "  ")
	return out.String(), err
}

// Geography is WKT in the store's form.
func Geography(s string) (string, error) {
	g, err := value.Geography(s)
	if err != nil {
		return "", fmt.Errorf("ST_GeogFromText failed: %w", err)
	}
	return g, nil
}

package gcs

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

func (s *Server) getObject(c *call) (answer, error) {
	generation, conditions, err := c.target()
	if err != nil {
		return nil, err
	}
	o, err := s.Objects.Get(c.bucket, c.object, generation, conditions)
	if err != nil {
		return nil, err
	}
	return resource{c.objectResource(&o)}, nil
}

// tags are If-Match and If-None-Match as a condition; nil where there are none.
func (c *call) tags() func(generation, metageneration int64) error {
	match, none := c.r.Header.Get("If-Match"), c.r.Header.Get("If-None-Match")
	if match == "" && none == "" {
		return nil
	}
	return func(generation, metageneration int64) error {
		tag := etag(metageneration) // of a bucket
		if generation != 0 {
			tag = etag(generation, metageneration)
		}
		is := func(header string) bool { return header == "*" || header == tag || header == strconv.Quote(tag) }
		if match != "" && !is(match) {
			return &refusal.Error{Reason: refusal.ConditionNotMet, Location: "If-Match", Message: "Precondition Failed"}
		}
		if none != "" && is(none) {
			return &refusal.Error{Reason: refusal.ConditionNotMet, Location: "ifNotMatch", Message: "Not Modified"}
		}
		return nil
	}
}

func (s *Server) deleteObject(c *call) (answer, error) {
	generation, conditions, err := c.target()
	if err != nil {
		return nil, err
	}
	return noContent, s.Objects.Delete(c.bucket, c.object, generation, conditions)
}

func (s *Server) listObjects(c *call) (answer, error) {
	limit, err := c.number("maxResults")
	if err != nil {
		return nil, err
	}
	q := objects.Query{
		Prefix: c.param("prefix"), Delimiter: c.param("delimiter"), StartOffset: c.param("startOffset"),
		EndOffset: c.param("endOffset"), PageToken: c.param("pageToken"),
	}
	if limit != nil {
		q.MaxResults = int(min(*limit, 1<<30))
	}
	page, err := s.Objects.Page(c.bucket, q)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"kind": "storage#objects"}
	if len(page.Objects) > 0 {
		items := make([]any, len(page.Objects))
		for i := range page.Objects {
			items[i] = c.objectResource(&page.Objects[i])
		}
		out["items"] = items
	}
	if len(page.Prefixes) > 0 {
		out["prefixes"] = page.Prefixes
	}
	if page.Next != "" {
		out["nextPageToken"] = page.Next
	}
	return resource{out}, nil
}

// patchable are the keys that a patch may change.
var patchable = fields("contentType contentEncoding contentDisposition contentLanguage cacheControl customTime metadata")

// patchObject changes the attributes that are named; null removes one, and within metadata a key.
func (s *Server) patchObject(c *call) (answer, error) { return s.changeObject(c, patch) }

// updateObject replaces all attributes that can change.
func (s *Server) updateObject(c *call) (answer, error) {
	return s.changeObject(c, func(a *objects.Attributes, raw map[string]json.RawMessage) error {
		*a = objects.Attributes{StorageClass: a.StorageClass}
		return patch(a, raw)
	})
}

func (s *Server) changeObject(c *call, change func(*objects.Attributes, map[string]json.RawMessage) error) (answer, error) {
	generation, conditions, err := c.target()
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	if err := onlyKeys(raw, "object", objectKeys); err != nil {
		return nil, err
	}
	o, err := s.Objects.Patch(c.bucket, c.object, generation, conditions, func(a *objects.Attributes) error { return change(a, raw) })
	if err != nil {
		return nil, err
	}
	return resource{c.objectResource(&o)}, nil
}

func patch(a *objects.Attributes, raw map[string]json.RawMessage) error {
	for key, value := range raw {
		if !patchable[key] {
			continue
		}
		if err := patchField(a, key, value); err != nil {
			return refusal.New(refusal.Invalid, "Invalid argument: %s: %v", key, err)
		}
	}
	return nil
}

func patchField(a *objects.Attributes, key string, value json.RawMessage) error {
	texts := map[string]*string{
		"contentType": &a.ContentType, "contentEncoding": &a.ContentEncoding, "contentDisposition": &a.ContentDisposition,
		"contentLanguage": &a.ContentLanguage, "cacheControl": &a.CacheControl,
	}
	if text := texts[key]; text != nil {
		*text = ""
		return json.Unmarshal(value, text)
	}
	if key == "customTime" {
		return json.Unmarshal(value, &a.CustomTime)
	}
	metadata, err := patchTexts(a.Metadata, value)
	if err == nil {
		a.Metadata = metadata
	}
	return err
}

// patchTexts are texts by name with those changed that a patch names; null removes one, or all.
func patchTexts(texts map[string]string, patch json.RawMessage) (map[string]string, error) {
	var changes map[string]*string
	if err := json.Unmarshal(patch, &changes); err != nil || changes == nil {
		return nil, err
	}
	out := map[string]string{}
	maps.Copy(out, texts)
	for name, text := range changes {
		if text == nil {
			delete(out, name)
		} else {
			out[name] = *text
		}
	}
	return out, nil
}

package gcs

import (
	"encoding/json"
	"strconv"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// rewrite copies an object. It is done when it is answered, whatever the size.
func (s *Server) rewrite(c *call) (answer, error) {
	o, err := s.duplicate(c)
	if err != nil {
		return nil, err
	}
	size := strconv.FormatInt(o.Size, 10)
	return resource{map[string]any{
		"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": true,
		"resource": c.objectResource(o),
	}}, nil
}

// copyObject is rewrite with the object itself for an answer.
func (s *Server) copyObject(c *call) (answer, error) {
	o, err := s.duplicate(c)
	if err != nil {
		return nil, err
	}
	return resource{c.objectResource(o)}, nil
}

func (s *Server) duplicate(c *call) (*objects.Object, error) {
	generation, err := c.generation("sourceGeneration")
	if err != nil {
		return nil, err
	}
	conditions, err := c.conditions("if")
	if err != nil {
		return nil, err
	}
	ofSource, err := c.conditions("ifSource")
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	w, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	declared, err := w.declared()
	if err != nil {
		return nil, err
	}
	o, err := s.Objects.Copy(objects.Source{Bucket: c.bucket, Name: c.object, Generation: generation, Conditions: ofSource},
		objects.Object{Bucket: c.toBucket, Name: c.toObject, Attributes: w.attributes()}, conditions, declared)
	return &o, err
}

// compose joins objects of the bucket.
func (s *Server) compose(c *call) (answer, error) {
	conditions, err := c.conditions("if")
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	if err := onlyKeys(raw, "compose request", fields("kind destination sourceObjects")); err != nil {
		return nil, err
	}
	var in struct {
		Destination map[string]json.RawMessage `json:"destination"`
		Sources     []struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation,string"`
			Conditions struct {
				Generation *int64 `json:"ifGenerationMatch,string"`
			} `json:"objectPreconditions"`
		} `json:"sourceObjects"`
	}
	if err := remarshal(raw, &in); err != nil {
		return nil, err
	}
	w, err := readObject(in.Destination)
	if err != nil {
		return nil, err
	}
	declared, err := w.declared()
	if err != nil {
		return nil, err
	}
	var sources []objects.Source
	for _, source := range in.Sources {
		if source.Name == "" {
			return nil, refusal.New(refusal.Required, "Required: sourceObjects.name")
		}
		sources = append(sources, objects.Source{Bucket: c.bucket, Name: source.Name, Generation: source.Generation,
			Conditions: objects.Conditions{Generation: source.Conditions.Generation}})
	}
	o, err := s.Objects.Compose(sources, objects.Object{Bucket: c.bucket, Name: c.object, Attributes: w.attributes()}, conditions, declared)
	if err != nil {
		return nil, err
	}
	return resource{c.objectResource(&o)}, nil
}

package gcs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"sort"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// lifecycle is a bucket's rules, of which the local service has one kind.
type lifecycle struct {
	Rule []lifecycleRule `json:"rule,omitempty"`
}

type lifecycleRule struct {
	Action    map[string]json.RawMessage `json:"action"`
	Condition map[string]json.RawMessage `json:"condition"`
}

// bucketKeys are the keys of a bucket resource that are read, kept, or the service's own to say.
var bucketKeys = fields("name location storageClass labels lifecycle iamConfiguration versioning " +
	"kind id selfLink etag metageneration timeCreated updated projectNumber acl defaultObjectAcl owner")

func (s *Server) insertBucket(c *call) (answer, error) {
	project := c.param("project")
	if project == "" {
		return nil, &refusal.Error{Reason: refusal.Required, Location: "project", Message: "Required parameter: project"}
	}
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	in, err := readBucket(raw)
	if err != nil {
		return nil, err
	}
	in.Project = project
	b, err := s.Objects.InsertBucket(in)
	if err != nil {
		return nil, err
	}
	return resource{c.bucketResource(&b)}, nil
}

// readBucket makes sense of a bucket resource.
func readBucket(raw map[string]json.RawMessage) (b objects.Bucket, err error) {
	if err := onlyKeys(raw, "bucket", bucketKeys); err != nil {
		return b, err
	}
	var in struct {
		Name         string            `json:"name"`
		Location     string            `json:"location"`
		StorageClass string            `json:"storageClass"`
		Labels       map[string]string `json:"labels"`
		Lifecycle    lifecycle         `json:"lifecycle"`
		Access       json.RawMessage   `json:"iamConfiguration"`
		Versioning   struct {
			Enabled bool `json:"enabled"`
		} `json:"versioning"`
	}
	if err := remarshal(raw, &in); err != nil {
		return b, err
	}
	if in.Versioning.Enabled {
		return b, refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement field versioning.enabled of bucket")
	}
	ages, err := in.Lifecycle.ages()
	return objects.Bucket{
		Name: in.Name, Location: in.Location, StorageClass: in.StorageClass, Labels: in.Labels, DeleteAges: ages, Access: in.Access,
	}, err
}

// patchBucket changes what the request names; null removes it, and within labels one of them.
func (s *Server) patchBucket(c *call) (answer, error) {
	return s.changeBucket(c, func(b *objects.Bucket, raw map[string]json.RawMessage, in objects.Bucket) error {
		if raw["labels"] != nil {
			var err error
			if in.Labels, err = patchTexts(b.Labels, raw["labels"]); err != nil {
				return refusal.New(refusal.Invalid, "Invalid argument: labels: %v", err)
			}
		}
		for key, set := range map[string]func(){
			"labels": func() { b.Labels = in.Labels }, "storageClass": func() { b.StorageClass = in.StorageClass },
			"lifecycle": func() { b.DeleteAges = in.DeleteAges }, "iamConfiguration": func() { b.Access = in.Access },
		} {
			if raw[key] != nil {
				set()
			}
		}
		return nil
	})
}

// updateBucket replaces all that can change.
func (s *Server) updateBucket(c *call) (answer, error) {
	return s.changeBucket(c, func(b *objects.Bucket, _ map[string]json.RawMessage, in objects.Bucket) error {
		b.Labels, b.StorageClass, b.DeleteAges, b.Access = in.Labels, in.StorageClass, in.DeleteAges, in.Access
		return nil
	})
}

func (s *Server) changeBucket(c *call, change func(b *objects.Bucket, raw map[string]json.RawMessage, in objects.Bucket) error) (answer, error) {
	conditions, err := c.conditions("if")
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := c.body(&raw); err != nil {
		return nil, err
	}
	in, err := readBucket(withoutNulls(raw, "labels"))
	if err != nil {
		return nil, err
	}
	b, err := s.Objects.PatchBucket(c.bucket, conditions, func(b *objects.Bucket) error {
		switch {
		case in.Name != "" && in.Name != b.Name:
			return refusal.New(refusal.Invalid, "Value '%s' in content does not agree with value '%s' in the path", in.Name, b.Name)
		case in.Location != "" && !strings.EqualFold(in.Location, b.Location):
			return refusal.New(refusal.Invalid, "The location of a bucket cannot be changed: %s is in %s", b.Name, b.Location)
		}
		return change(b, raw, in)
	})
	if err != nil {
		return nil, err
	}
	return resource{c.bucketResource(&b)}, nil
}

// withoutNulls is an object with the nulls of a member of it left out, which stand for what is to be removed.
func withoutNulls(raw map[string]json.RawMessage, member string) map[string]json.RawMessage {
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw[member], &inner) != nil {
		return raw
	}
	maps.DeleteFunc(inner, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	out := maps.Clone(raw)
	if text, err := json.Marshal(inner); err == nil {
		out[member] = text
	}
	return out
}

// ages are the rules that delete by age; any other is refused by name.
func (l *lifecycle) ages() (out []objects.Age, err error) {
	for _, rule := range l.Rule {
		var kind string
		if json.Unmarshal(rule.Action["type"], &kind) != nil || kind != "Delete" {
			return nil, refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement lifecycle action %s: it has Delete", rule.Action["type"])
		}
		if err := onlyKeys(rule.Condition, "lifecycle condition", fields("age matchesPrefix matchesSuffix")); err != nil {
			return nil, err
		}
		var condition struct {
			Age           *int64   `json:"age"`
			MatchesPrefix []string `json:"matchesPrefix"`
			MatchesSuffix []string `json:"matchesSuffix"`
		}
		if err := remarshal(rule.Condition, &condition); err != nil {
			return nil, err
		}
		if condition.Age == nil {
			return nil, refusal.New(refusal.NotImplemented, "local Cloud Storage implements lifecycle rules with an age only")
		}
		if *condition.Age < 0 {
			return nil, refusal.New(refusal.Invalid, "Invalid argument: a lifecycle age of %d days", *condition.Age)
		}
		out = append(out, objects.Age{Days: *condition.Age, Prefixes: condition.MatchesPrefix, Suffixes: condition.MatchesSuffix})
	}
	return out, nil
}

func (s *Server) getBucket(c *call) (answer, error) {
	conditions, err := c.conditions("if")
	if err != nil {
		return nil, err
	}
	b, err := s.Objects.Bucket(c.bucket, conditions)
	if err != nil {
		return nil, err
	}
	return resource{c.bucketResource(&b)}, nil
}

func (s *Server) deleteBucket(c *call) (answer, error) {
	conditions, err := c.conditions("if")
	if err != nil {
		return nil, err
	}
	return noContent, s.Objects.DeleteBucket(c.bucket, conditions)
}

func (s *Server) listBuckets(c *call) (answer, error) {
	limit, err := c.number("maxResults")
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(c.param("pageToken"))
	if err != nil {
		return nil, &refusal.Error{Reason: refusal.Invalid, Location: "pageToken", Message: "Invalid Value"}
	}
	all := s.Objects.Buckets(c.param("project"), c.param("prefix"))
	all = all[sort.Search(len(all), func(i int) bool { return all[i].Name > string(after) }):]
	out := map[string]any{"kind": "storage#buckets"}
	if limit != nil && *limit > 0 && int64(len(all)) > *limit {
		all = all[:*limit]
		out["nextPageToken"] = base64.RawURLEncoding.EncodeToString([]byte(all[*limit-1].Name))
	}
	items := make([]any, len(all))
	for i := range all {
		items[i] = c.bucketResource(&all[i])
	}
	if len(items) > 0 {
		out["items"] = items
	}
	return resource{out}, nil
}

// bucketResource is a bucket as the API shows it.
func (c *call) bucketResource(b *objects.Bucket) map[string]any {
	out := map[string]any{
		"kind": "storage#bucket", "id": b.Name, "name": b.Name, "selfLink": c.base() + "/storage/v1/b/" + b.Name,
		"location": b.Location, "locationType": locationType(b.Location), "storageClass": b.StorageClass,
		"timeCreated": b.Created.Format(timeFormat), "updated": b.Updated.Format(timeFormat),
		"metageneration": strconv.FormatInt(b.Metageneration, 10), "etag": etag(b.Metageneration),
		"iamConfiguration": json.RawMessage(cmp.Or(string(b.Access), `{"publicAccessPrevention":"inherited","uniformBucketLevelAccess":{"enabled":false}}`)),
	}
	if len(b.Labels) > 0 {
		out["labels"] = b.Labels
	}
	if len(b.DeleteAges) > 0 {
		rules := make([]any, len(b.DeleteAges))
		for i, rule := range b.DeleteAges {
			rules[i] = ageResource(rule)
		}
		out["lifecycle"] = map[string]any{"rule": rules}
	}
	return out
}

func ageResource(a objects.Age) map[string]any {
	condition := map[string]any{"age": a.Days}
	if len(a.Prefixes) > 0 {
		condition["matchesPrefix"] = a.Prefixes
	}
	if len(a.Suffixes) > 0 {
		condition["matchesSuffix"] = a.Suffixes
	}
	return map[string]any{"action": map[string]any{"type": "Delete"}, "condition": condition}
}

// locationType tells regions from what spans several.
func locationType(location string) string {
	switch {
	case location == "US" || location == "EU" || location == "ASIA":
		return "multi-region"
	case !strings.Contains(location, "-"):
		return "dual-region"
	}
	return "region"
}

package gcs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
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
	if err := onlyKeys(raw, "bucket", bucketKeys); err != nil {
		return nil, err
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
		return nil, err
	}
	if in.Versioning.Enabled {
		return nil, refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement field versioning.enabled of bucket")
	}
	ages, err := in.Lifecycle.ages()
	if err != nil {
		return nil, err
	}
	b, err := s.Objects.InsertBucket(objects.Bucket{
		Name: in.Name, Project: project, Location: in.Location, StorageClass: in.StorageClass, Labels: in.Labels,
		DeleteAges: ages, Access: in.Access,
	})
	if err != nil {
		return nil, err
	}
	return resource{c.bucketResource(&b)}, nil
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

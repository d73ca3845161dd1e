package rest

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"sort"
	"strconv"
)

// defaultPage is how many resources a list answers where the client does not say (BigQuery documentation, datasets.list).
const defaultPage = 50

// page cuts a list, which is sorted by key, to what the call asks for, and answers the token for what comes next. A token
// names the last key answered, so a list that changes between two pages loses and repeats nothing that stays in it.
func page[T any](c *call, all []T, key func(T) string) ([]T, string, error) {
	limit, err := c.number("maxResults")
	if err != nil {
		return nil, "", err
	}
	if limit < 0 {
		limit = defaultPage
	}
	if token := c.param("pageToken"); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", invalidParam("pageToken", token, "a token of an earlier answer")
		}
		all = all[sort.Search(len(all), func(i int) bool { return key(all[i]) > string(last) }):]
	}
	if limit >= int64(len(all)) {
		return all, "", nil
	}
	all = all[:limit]
	if limit == 0 {
		return all, "", nil
	}
	return all, base64.RawURLEncoding.EncodeToString([]byte(key(all[limit-1]))), nil
}

// listTag is an etag for a list of resources.
func listTag(items any) string {
	raw, err := json.Marshal(items)
	if err != nil {
		panic(err) // resources always marshal
	}
	h := fnv.New64a()
	h.Write(raw)
	return strconv.FormatUint(h.Sum64(), 36)
}

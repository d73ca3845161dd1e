package gcs

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

const timeFormat = "2006-01-02T15:04:05.000Z"

func (c *call) base() string { return "http://" + c.r.Host }

// etag changes with every change of a thing.
func etag(numbers ...int64) string {
	var b []byte
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func objectTag(o *objects.Object) string { return etag(o.Generation, o.Metageneration) }

// objectResource is an object as the API shows it.
func (c *call) objectResource(o *objects.Object) map[string]any {
	generation := strconv.FormatInt(o.Generation, 10)
	path := "/storage/v1/b/" + o.Bucket + "/o/" + url.PathEscape(o.Name)
	out := map[string]any{
		"kind": "storage#object", "id": o.Bucket + "/" + o.Name + "/" + generation,
		"selfLink":  c.base() + path,
		"mediaLink": c.base() + "/download" + path + "?generation=" + generation + "&alt=media",
		"name":      o.Name, "bucket": o.Bucket, "generation": generation, "etag": objectTag(o),
		"metageneration": strconv.FormatInt(o.Metageneration, 10),
		"size":           strconv.FormatInt(o.Size, 10), "crc32c": objects.EncodeCRC32C(o.CRC32C),
		"storageClass": o.StorageClass, "timeStorageClassUpdated": o.Created.Format(timeFormat),
		"timeCreated": o.Created.Format(timeFormat), "updated": o.Updated.Format(timeFormat),
	}
	for name, value := range map[string]string{
		"contentType": o.ContentType, "contentEncoding": o.ContentEncoding, "contentDisposition": o.ContentDisposition,
		"contentLanguage": o.ContentLanguage, "cacheControl": o.CacheControl,
	} {
		if value != "" {
			out[name] = value
		}
	}
	if o.MD5 != nil {
		out["md5Hash"] = objects.EncodeMD5(o.MD5)
	}
	if o.Components > 0 {
		out["componentCount"] = o.Components
	}
	if len(o.Metadata) > 0 {
		out["metadata"] = o.Metadata
	}
	if !o.CustomTime.IsZero() {
		out["customTime"] = o.CustomTime.Format(time.RFC3339Nano)
	}
	return out
}

// written is what a client says of an object that is to be.
type written struct {
	Name               string            `json:"name"`
	Bucket             string            `json:"bucket"`
	ContentType        string            `json:"contentType"`
	ContentEncoding    string            `json:"contentEncoding"`
	ContentDisposition string            `json:"contentDisposition"`
	ContentLanguage    string            `json:"contentLanguage"`
	CacheControl       string            `json:"cacheControl"`
	StorageClass       string            `json:"storageClass"`
	CustomTime         time.Time         `json:"customTime"`
	Metadata           map[string]string `json:"metadata"`
	CRC32C             string            `json:"crc32c"`
	MD5Hash            string            `json:"md5Hash"`
}

// readObject makes sense of an object resource, of which the keys that say something new are the ones of written.
func readObject(raw map[string]json.RawMessage) (w written, err error) {
	if err := onlyKeys(raw, "object", objectKeys); err != nil {
		return w, err
	}
	return w, remarshal(raw, &w)
}

func remarshal(raw map[string]json.RawMessage, v any) error {
	text, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return refusal.New(refusal.Invalid, "Invalid argument: %v", err)
	}
	return nil
}

// objectKeys are the keys of an object resource that are read, that the service ignores because they are its own to say, or that
// concern access, which nobody is denied.
var objectKeys = fields("name bucket contentType contentEncoding contentDisposition contentLanguage cacheControl storageClass " +
	"customTime metadata crc32c md5Hash " +
	"kind id selfLink mediaLink etag generation metageneration size timeCreated timeStorageClassUpdated updated componentCount " +
	"acl owner")

// onlyKeys refuses keys that would change something and are not read. Those that say nothing are let pass.
func onlyKeys(raw map[string]json.RawMessage, what string, known map[string]bool) error {
	for key, value := range raw {
		switch strings.TrimSpace(string(value)) {
		case "null", "false", `""`, "{}", "[]":
			continue
		}
		if !known[key] {
			return refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement field %s of %s", key, what)
		}
	}
	return nil
}

func (w *written) attributes() objects.Attributes {
	return objects.Attributes{
		ContentType: w.ContentType, ContentEncoding: w.ContentEncoding, ContentDisposition: w.ContentDisposition,
		ContentLanguage: w.ContentLanguage, CacheControl: w.CacheControl, StorageClass: w.StorageClass,
		CustomTime: w.CustomTime, Metadata: w.Metadata,
	}
}

// declared are the checksums that a client says its bytes have.
func (w *written) declared() (d objects.Declared, err error) {
	if w.CRC32C != "" {
		err = setCRC32C(&d, w.CRC32C)
	}
	if w.MD5Hash != "" && err == nil {
		err = setMD5(&d, w.MD5Hash)
	}
	return d, err
}

func setCRC32C(d *objects.Declared, text string) error {
	sum, err := objects.DecodeCRC32C(text)
	if err != nil {
		return refusal.New(refusal.Invalid, "Invalid argument: %v", err)
	}
	d.CRC32C = &sum
	return nil
}

func setMD5(d *objects.Declared, text string) (err error) {
	if d.MD5, err = objects.DecodeMD5(text); err != nil {
		return refusal.New(refusal.Invalid, "Invalid argument: %v", err)
	}
	return nil
}

// hashes reads X-Goog-Hash headers, "crc32c=…,md5=…", over what is declared already.
func (c *call) hashes(d *objects.Declared) error {
	for _, header := range c.r.Header.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(header, ",") {
			name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
			var err error
			switch name {
			case "crc32c":
				err = setCRC32C(d, text)
			case "md5":
				err = setMD5(d, text)
			default:
				err = refusal.New(refusal.Invalid, "Invalid X-Goog-Hash %q: expected crc32c=… or md5=…", header)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

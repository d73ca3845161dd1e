package objects

import (
	"maps"
	"time"
)

// Object is an object's attributes. The JSON form is what a folder keeps.
type Object struct {
	Bucket string `json:"bucket"`
	Name   string `json:"name"`
	// Generation tells objects of one name apart: a later one has a higher number. It is microseconds of the service's clock
	// where those grow.
	Generation int64 `json:"generation"`
	// Metageneration counts the versions of the attributes from 1.
	Metageneration int64 `json:"metageneration"`
	Size           int64 `json:"size"`
	// CRC32C is the checksum with the Castagnoli polynomial; MD5 is nil for a composed object.
	CRC32C uint32 `json:"crc32c"`
	MD5    []byte `json:"md5,omitempty"`
	// Components is how many objects it was composed of; 0 where it was not.
	Components int64     `json:"components,omitempty"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
	Attributes

	data   string // names the bytes
	upload string // the resumable upload that made it
}

// Attributes are what a client says about an object and may change later.
type Attributes struct {
	ContentType        string            `json:"contentType,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	CacheControl       string            `json:"cacheControl,omitempty"`
	StorageClass       string            `json:"storageClass,omitempty"`
	CustomTime         time.Time         `json:"customTime,omitzero"`
	Metadata           map[string]string `json:"metadata,omitempty"`
}

func (a *Attributes) empty() bool {
	return a.ContentType == "" && a.ContentEncoding == "" && a.ContentDisposition == "" && a.ContentLanguage == "" &&
		a.CacheControl == "" && a.StorageClass == "" && a.CustomTime.IsZero() && a.Metadata == nil
}

// clone shares nothing that can be changed.
func (o *Object) clone() Object {
	c := *o
	c.Metadata = maps.Clone(o.Metadata)
	return c
}

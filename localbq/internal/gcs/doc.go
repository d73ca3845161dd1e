// Package gcs is the Cloud Storage face of the local BigQuery: the part of the JSON API that staging and loading need, with
// its upload, download and batch endpoints, and reading objects over the XML API, which the official Go client does.
//
// Buckets can be inserted, got, listed and deleted; objects inserted in one request, in two parts or resumably, read as a whole
// or in ranges, listed, patched, copied, composed and deleted, all under preconditions. What is not implemented is refused with
// 501 by its name. No credential is checked and nobody is denied anything; access control lists and policies that a client sends
// along are kept for buckets and passed over for objects.
package gcs

// Package rowtest is the suite that every serializer passes: what row.Serializer promises, checked from outside, with
// the protobuf library as the judge of the bytes.
package rowtest

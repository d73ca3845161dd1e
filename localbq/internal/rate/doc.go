// Package rate counts how often something happens, for quotas: in buckets that fill again as time goes by, and in windows that
// slide.
package rate

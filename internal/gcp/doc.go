// Package gcp opens clients of Google Cloud services: where they connect and as whom. It is the one place that knows
// about endpoints, key files and emulators; what it returns are the official clients, otherwise untouched.
package gcp

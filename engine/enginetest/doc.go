// Package enginetest holds checkpoint stores to their contract, and makes the calls of a store steps of a process that a
// test can kill anywhere.
package enginetest

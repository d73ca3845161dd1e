// Package testpb has messages that the tests of protorow use as a program would, with code generated from the .proto files
// beside this one. The test TestGenerated in protorow, with -rewrite, generates it anew.
package testpb

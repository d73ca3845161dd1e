// Package streamtest holds sources, sinks and engines to the contracts of package stream.
//
// [TestSource], [TestSink] and [TestEngine] are the suites; each takes a harness that says how to make the thing under
// test, and what it cannot do. Every check of a suite is proved by an implementation that is broken in just that way:
// see the tests of this package.
//
// [Ranges], [Queue] and [World], with its sinks [Buffered] and [Direct], are small real sources and sinks to test
// engines with. [Process] is a process that can be cut off from the world at any step, so that a test can crash a job
// everywhere, start it again, and compare the world with the input.
package streamtest

// Package objects keeps staged files on Cloud Storage: it uploads them piece by piece, and deletes them.
//
// An object under way holds at most 256 KiB until it is larger than that, and one piece of 4 MiB from then on, whatever its size: what
// has been sent and acknowledged is not kept. A request that fails in passing is sent again, an upload that was cut off goes on where
// the service has it; one whose session is gone at the service is lost, with all that was sent.
package objects

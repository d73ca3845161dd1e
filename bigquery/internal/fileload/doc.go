// Package fileload writes rows to files on Cloud Storage, and has load jobs bring them into tables when a checkpoint is complete or the
// input has ended.
//
//	row ─ Writer, one for each lane ─▶ object on Cloud Storage
//	        │ Prepare: one committable for each object
//	        ▼
//	      checkpoint ─▶ Committer, one for all ─▶ plan ─▶ load, copy and query jobs ─▶ table
//
// A job names exactly the objects of its committables, which no other attempt can have written, and its id is a function of them: a
// commit that is made again finds the jobs of the first time. See package loadplan.
package fileload

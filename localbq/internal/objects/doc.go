// Package objects holds the buckets and objects of the local Cloud Storage, in memory or in a folder.
//
// An object is invisible until all of it is there, becomes visible at once, and never changes: what overwrites it is another
// object, of a higher generation. A reader that is open goes on reading the object it was opened on.
//
// In a folder, the bytes of each object lie in a file with a random name, and a file of attributes names them. The second
// file is what makes the object exist: it is written beside its place, forced to the disk if asked for, and renamed. Names of
// objects never become names of files, so no name leads out of the folder.
package objects

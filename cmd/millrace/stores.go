package main

// Checkpoint stores beyond those the engine brings: gs://.
import _ "gocloud.dev/blob/gcsblob"

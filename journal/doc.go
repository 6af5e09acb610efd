// Package journal stores records in order, durably.
//
// A driver writes each decision to a journal before it acts on it, and reads
// the journal back after a crash.
//
//	j, err := journal.Open("queue.journal")
//	err = j.Replay(func(record []byte) error { … })
//	err = j.Append(record) // on disk when it returns
//
// Records that are appended in one call survive a crash together or not at all.
//
// [File] is an append-only file. Each append is one frame with its length and
// CRC-32C checksums. A crash during an append leaves a torn tail: Open detects the
// tail and truncates the file to the last complete frame, and [File.Cut] returns
// the number of bytes removed. If complete frames follow the damage, it is not a
// torn tail, and Open returns ErrCorrupt. Open cannot distinguish a torn tail from
// later damage to the last frame. If Cut is not zero although the process was not
// killed, find out why.
//
// Only one process can have a file open. If another process tries, Open returns
// ErrInUse until the first process has closed the file or has exited.
//
// [Memory] keeps records in memory only. Package pebblejournal stores them in a
// Pebble database. Package journaltest tests other implementations of
// [Journal].
package journal

// Package journal keeps records in order, durably.
//
// A driver writes its decision to a journal before it acts on it, and reads the journal back after a crash.
//
//	j, err := journal.Open("queue.journal")
//	err = j.Replay(func(record []byte) error { … })
//	err = j.Append(record) // on disk when it returns
//
// Records that are appended together survive a crash together or not at all.
//
// [File] is an append-only file. What is appended together stands behind its length and CRC-32C checksums. A crash while it is being
// written leaves a torn tail: Open finds it by length or checksum, cuts the file at the last whole append and says how much it cut. Damage that
// more appends follow is no torn tail, and no reason to forget those: Open refuses with ErrCorrupt. What it cannot tell from a torn tail is bits of the last
// append that rotted later: a host that was not killed and finds something cut should ask why.
// Two processes never have one file: Open refuses the second with ErrInUse, and lets it in when the first has closed the file or was killed.
// [Memory] keeps records for as long as the process lives. Package pebblejournal has a journal in a Pebble database, and package journaltest
// checks one of your own.
package journal

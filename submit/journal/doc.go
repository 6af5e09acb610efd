// Package journal keeps records in order, durably.
//
// A driver writes its decision to a journal before it acts on it, and reads the journal back after a crash.
//
//	j, err := journal.Open("queue.journal")
//	err = j.Replay(func(record []byte) error { … })
//	err = j.Append(record) // on disk when it returns
//
// [File] is an append-only file. Each record stands behind its length and a CRC-32C checksum. A crash while a record is being written
// leaves a torn tail: Open finds it by length or checksum, cuts the file at the last whole record and says how much it
// cut. It never guesses. [Memory] keeps records for as long as the process lives.
package journal

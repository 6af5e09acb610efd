// Package journaltest tests implementations of builder.Log, which are journals in the
// sense of package journal. A log that passes keeps what a builder writes:
//
//   - any bytes, also empty records, line ends, zeros and bytes that are not UTF-8
//   - any length up to journal.MaxRecord; a log that refuses shorter records, for example
//     those above 64 KiB, stops the builder at each block that is larger
//   - the order, also after a replacement and after it was opened again, when the next record
//     comes after the last one
//   - all records of a call together, and nothing of a call that is refused
//   - concurrent calls of Append
//
// It does not see whether Append returns before the disk has the records. A power cut
// shows that, or a file system for tests, such as vfs of Pebble.
//
//	func TestMyLog(t *testing.T) {
//		dir := t.TempDir()
//		journaltest.Run(t, func() journal.Journal { return openMine(t, dir) })
//	}
package journaltest

// Package journaltest tests implementations of builder.Log, which are journals in
// the sense of package journal. A log that passes the tests keeps these properties
// of the records that a builder writes:
//
//   - any bytes, also empty records, line ends, zeros and bytes that are not UTF-8
//   - any length up to journal.MaxRecord; a log that refuses shorter records, for example
//     those above 64 KiB, stops the builder at each block that is larger
//   - the order, also after a replacement and after it was opened again, when the next record
//     comes after the last one
//   - all records of a call together, and nothing of a call that is refused
//   - concurrent calls of Append
//
// The tests do not show whether Append returns before the records are on the disk.
// To test that, use a power cut, or a test file system such as Pebble's vfs.
//
//	func TestMyLog(t *testing.T) {
//		dir := t.TempDir()
//		journaltest.Run(t, func() journal.Journal { return openMine(t, dir) })
//	}
package journaltest

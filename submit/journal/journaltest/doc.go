// Package journaltest tests implementations of the interface in package
// journal.
//
//	func TestMyJournal(t *testing.T) {
//		dir := t.TempDir()
//		journaltest.Run(t, func() journal.Journal { return openMine(t, dir) })
//	}
package journaltest

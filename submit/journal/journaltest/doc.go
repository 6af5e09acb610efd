// Package journaltest checks that a journal does what package journal asks of it: for those who write one of their own.
//
//	func TestMyJournal(t *testing.T) {
//		dir := t.TempDir()
//		journaltest.Run(t, func() journal.Journal { return openMine(t, dir) })
//	}
package journaltest

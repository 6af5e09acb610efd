// Package logtest tests implementations of builder.Log, which are journals in the
// sense of package submit/journal.
//
//	func TestMyLog(t *testing.T) {
//		dir := t.TempDir()
//		logtest.Run(t, func() journal.Journal { return openMine(t, dir) })
//	}
package logtest

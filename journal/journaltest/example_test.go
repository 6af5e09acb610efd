package journaltest_test

import (
	"path/filepath"
	"testing"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/journal/journaltest"
)

// A journal's own test opens the same data at each call. Only a test can run
// the suite, so this example is compiled and not run.
func ExampleRun() {
	var t *testing.T // of the test
	path := filepath.Join(t.TempDir(), "journal")
	journaltest.Run(t, func() journal.Journal {
		j, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return j
	})
}

package logtest_test

import (
	"path/filepath"
	"testing"

	"github.com/jamq/jamq/builder/logtest"
	"github.com/jamq/jamq/submit/journal"
)

// A journal's own test opens the same data at each call. Only a test can run
// the suite, so this example is compiled and not run.
func ExampleRun() {
	var t *testing.T // of the test
	path := filepath.Join(t.TempDir(), "journal")
	logtest.Run(t, func() journal.Journal {
		j, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return j
	})
}

package journal_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/jamq/jamq/journal"
)

// A driver writes what it decided before it acts, and reads it back after a crash.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "queue")
	for _, decision := range []string{"send block 1 to core 0", "send block 2 to core 1"} {
		j, err := journal.Open(path) // as after a crash
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("replay:", j.Replay(func(record []byte) error {
			fmt.Printf("  %s\n", record)
			return nil
		}))
		fmt.Println("append:", j.Append([]byte(decision)), j.Close())
	}
	// Output:
	// replay: <nil>
	// append: <nil> <nil>
	//   send block 1 to core 0
	// replay: <nil>
	// append: <nil> <nil>
}

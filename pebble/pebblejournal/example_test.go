package pebblejournal_test

import (
	"fmt"
	"os"

	"github.com/jamq/jamq/pebble/pebblejournal"
)

// A journal is kept short by a snapshot that takes the place of all that led to it.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	j, err := pebblejournal.Open(dir, pebblejournal.Options{})
	must(err)
	must(j.Append([]byte("one"), []byte("two")))
	must(j.Replace([]byte("a snapshot")))
	must(j.Append([]byte("three")))
	must(j.Close())

	j, err = pebblejournal.Open(dir, pebblejournal.Options{})
	must(err)
	must(j.Replay(func(record []byte) error {
		fmt.Printf("%s\n", record)
		return nil
	}))
	must(j.Close())
	// Output:
	// a snapshot
	// three
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

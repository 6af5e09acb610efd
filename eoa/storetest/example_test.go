package storetest_test

import (
	"testing"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/eoa/storetest"
)

// A test of a store opens the same data each time. Only a test can run the
// suite, so this example is compiled and not run.
func ExampleRun() {
	var t *testing.T // of the test
	kv := memstore.NewKV()
	storetest.Run(t, func() eoa.Store { return kvstore.New(kv) })
}

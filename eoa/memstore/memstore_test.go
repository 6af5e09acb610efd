package memstore_test

import (
	"testing"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/eoa/storetest"
)

func TestConformance(t *testing.T) {
	kv := memstore.NewKV()
	storetest.Run(t, func() eoa.Store { return kvstore.New(kv) })
}

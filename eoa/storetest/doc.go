// Package storetest tests that an [eoa.Store] keeps its contract. Run it on
// your implementation:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func() eoa.Store { return open(t) })
//	}
//
// [Benchmark] compares a store with the bare writes of its database.
package storetest

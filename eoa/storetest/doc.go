// Package storetest checks that a store does what package eoa asks of one. Run it on your own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func() eoa.Store { return open(t) })
//	}
//
// Benchmark measures it beside the bare writes of its database.
package storetest

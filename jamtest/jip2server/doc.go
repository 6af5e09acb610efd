// Package jip2server puts a simulated JAM chain behind JIP-2, the JSON-RPC of JAM nodes over WebSocket, so that a builder can be tested over a real
// socket: as a package in a test, or as a process of its own (examples/jamnode).
//
//	s, err := jip2server.New(jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7)))
//	web := httptest.NewServer(s)          // ws:// on a loopback port
//	s.Step()                              // one slot; or s.Run(ctx) for slots in real time
//	s.Cut()                               // all connections break
//
// It is written from the proposal and shares no shapes with the client in submit/jip2, so that the two check each other.
//
// # What it answers
//
// Parameters, best and finalized block, parent, state and BEEFY roots, service values, the submission of packages and bundles, package
// status, sync state, and the subscriptions to them. What the simulated chain has not (statistics, preimages, segments, reports) is
// answered as a node does that does not know the method. Config.Missing takes more away, to play an older node.
//
// # The service
//
// Every service on the chain behaves like a rollup's that leaves a mark: it stores under a package's hash the slot in which it took the package,
// under [CountKey] how many it has taken, and each of them, hash and payload, under [EntryKey].
//
// # Faults
//
// The chain's own are in jamtest.Config; [Server.ChangeFaults] and
// [Server.Inject] change them while it runs. Config.Fault breaks the RPC: answers that never come, come late, are garbage or errors, and sockets that are cut
// in the middle of a call.
//
// # Restart
//
// With a journal, everything that moves the chain is written down before it is done. The same journal and seed give the same chain, so a server that
// was killed comes back with it; the slots in between were skipped.
package jip2server

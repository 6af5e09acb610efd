// Package jip2server serves a simulated JAM chain over JIP-2, the JSON-RPC of
// JAM nodes over WebSocket. With it a builder can be tested over a real socket,
// inside a test or as a separate process (examples/jamnode).
//
//	s, err := jip2server.New(jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7)))
//	web := httptest.NewServer(s) // ws:// on a loopback port
//	s.Step()                     // one slot; or s.Run(ctx) for slots in real time
//	s.Cut()                      // breaks all connections
//
// The package shares no types with the client in submit/jip2, so that each can
// check the other.
//
// # Methods
//
// The server has parameters, best and finalized block, parent, state and BEEFY
// roots, service accounts and values, the submission of packages and bundles, package
// status, sync state, and the subscriptions to them. If the chain has
// services (jamtest.Config.Genesis), it also has the parts of BEEFY proofs. For the
// parts that the simulated chain lacks (statistics, preimages, segments, reports)
// it answers like a node without the method.
//
// # Profiles
//
// The server follows the text of JIP-2. Config.Deviations changes that: methods
// that are missing or stubs, other error codes, states that are pruned, other
// envelopes of notifications. [Profiles] has the deviations of known nodes under
// their names, so that a client can be tested against all of them.
//
// # Services
//
// The services are those of jamtest.Config.Genesis. They have the storage and the
// rules of package service, so a package changes nothing unless its payload begins
// with a header of the next block and its authorizer is that of the service. A package
// with the authorizer of package service is refused unless its builder has signed it.
//
// # Faults
//
// jamtest.Config has the faults of the chain. [Server.ChangeFaults] and
// [Server.Inject] change them while it runs. Config.Fault breaks the RPC:
// answers that are late, missing, malformed or errors, and sockets that are cut
// in the middle of a call.
//
// # Restart
//
// With a journal, everything that moves the chain is written before it is
// carried out. The same journal and seed give the same chain, so a server that
// was killed continues with it. The slots in between are skipped.
package jip2server

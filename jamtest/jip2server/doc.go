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
// The server answers the methods for:
//
//   - parameters, best and finalized block, parent, state root and BEEFY root
//   - service accounts and service values
//   - submission of packages and bundles, and the status of packages
//   - the sync state
//   - values and proofs of the raw state, which are an open proposal for JIP-2
//   - the parts of BEEFY proofs, if the chain has services (jamtest.Config.Genesis)
//
// Clients can subscribe to the heads, values, statuses and sync state. The
// simulated chain lacks statistics, preimages, segments and reports, so the server
// answers calls for them like a node without the method.
//
// # Profiles
//
// By default the server follows the text of JIP-2. Config.Deviations changes its
// behaviour, for example with missing methods, stubs, other error codes, pruned
// states or another format of notifications. [Profiles] has the deviations of known
// nodes by name, so that a client can be tested against all of them.
//
// # Services
//
// The services are those of jamtest.Config.Genesis, with the storage and the rules
// of package service. A package therefore changes nothing unless its payload begins
// with a header of the next block and its authorizer is that of the service. A
// package with the authorizer of package service is refused unless its builder has
// signed it.
//
// # Faults
//
// jamtest.Config has the faults of the chain. [Server.ChangeFaults] and
// [Server.Inject] change them while it runs. Config.Fault breaks the RPC: answers
// can be late, missing, malformed or errors, and connections can be cut in the
// middle of a call.
//
// # Restart
//
// With a journal, every input that moves the chain is recorded before a client can
// see its effect. The same journal and seed give the same chain, so a restarted
// server continues the chain of a server that was killed. The slots in between are
// skipped.
package jip2server

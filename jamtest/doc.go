// Package jamtest simulates a JAM chain, for tests of everything that depends on what becomes of work packages.
//
// A [Chain] obeys the Gray Paper's rules of reporting, availability and accumulation, and decides what they leave open
// (who authors, what is lost, how long things take, which fork wins) from one seed. Time is virtual: each call of
// [Chain.Advance] is a slot. The same configuration and calls give the same chain, byte for byte.
//
//	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 7))
//	anchors := chain.Anchors()
//	err = chain.Submit(pkg, core, guarantor) // may be lost without a word, as on a real network
//	update := chain.Advance()                // the blocks imported in the next slot, best and finalized heads
//
// It is written from the rules and shares no code with package anchor, so that the two check each other.
//
// # What is simulated
//
// Reports enter only with an anchor among the last H blocks with its right roots, a lookup anchor young enough, no hash
// twice, prerequisites in recent history, and a free core. Cores are freed by availability or the time-out. Available
// reports accumulate once their prerequisites have, or wait in the ready queue for an epoch at most. Forks, reorgs
// and finality follow the best chain. Authorizers, gas and disputes are not simulated.
//
// # Real time
//
// A [Driver] runs a chain on the wall clock, for programs.
package jamtest

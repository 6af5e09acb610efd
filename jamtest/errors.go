package jamtest

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("jamtest: invalid config")
	// ErrRefused is returned for a package that every guarantor refuses because of its
	// content.
	ErrRefused = errors.New("jamtest: package refused")
	// ErrUnknownBlock is returned for a block that the chain never had or has forgotten.
	ErrUnknownBlock = errors.New("jamtest: unknown block")
	// ErrNoAnchor is returned if the best chain is too short for the requested
	// anchor.
	ErrNoAnchor = errors.New("jamtest: no such anchor")
	// ErrNotFinal is returned if a proof is requested for a block that is not on the final
	// chain, or if too few validators can sign.
	ErrNotFinal = errors.New("jamtest: not final")
	// ErrNotYielded is returned if a proof needs a yield of the service, but the rollup
	// block has none. A service yields only for the last rollup block in each of its calls.
	ErrNotYielded = errors.New("jamtest: not yielded")
	// ErrNoServices is returned if Config.Genesis is nil.
	ErrNoServices = errors.New("jamtest: the chain has no services")
	// ErrNotKillable is returned by [Chain.Kill] for a package that was never submitted, or
	// that became available or was lost.
	ErrNotKillable = errors.New("jamtest: package cannot be killed")
	// ErrRunning is returned by [Driver.Run] while another Run is active.
	ErrRunning = errors.New("jamtest: driver is running")
)

// The reasons why a block must not report a package. The error of [Chain.Reportable]
// wraps one of them.
var (
	// ErrAnchorNotRecent means that the anchor is not in recent history, which is the last
	// H blocks of this chain (Gray Paper 11.33).
	ErrAnchorNotRecent = errors.New("jamtest: anchor is not recent")
	// ErrAnchorRoots means that the refine context has another state root or BEEFY root
	// than the anchor (Gray Paper 11.33).
	ErrAnchorRoots = errors.New("jamtest: anchor has other roots")
	// ErrLookupAnchor means that the lookup anchor is too old, or is not an ancestor of the
	// block (Gray Paper 11.34, 11.35).
	ErrLookupAnchor = errors.New("jamtest: lookup anchor is too old or not an ancestor")
	// ErrDuplicate means that this chain already has the package in recent history, on a
	// core, in the ready queue, or among the accumulated packages (Gray Paper 11.36 to
	// 11.38).
	ErrDuplicate = errors.New("jamtest: package was reported before")
	// ErrPrerequisite means that neither this block nor the last H blocks have reported a
	// prerequisite of the package (Gray Paper 11.39).
	ErrPrerequisite = errors.New("jamtest: prerequisite is not in recent history")
	// ErrCoreInactive means that too few validators are active to serve the core (Gray
	// Paper 0.8.0, 11.4).
	ErrCoreInactive = errors.New("jamtest: core is inactive")
	// ErrCoreEngaged means that another report occupies the core (GP 11.29).
	ErrCoreEngaged = errors.New("jamtest: core is engaged")
)

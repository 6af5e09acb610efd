package jamtest

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("jamtest: invalid config")
	// ErrRefused is returned for a package that a guarantor would refuse
	// because of its content.
	ErrRefused = errors.New("jamtest: package refused")
	// ErrUnknownBlock is returned for a block that the chain never had, or has
	// forgotten.
	ErrUnknownBlock = errors.New("jamtest: unknown block")
	// ErrNoAnchor is returned if the best chain is too short for the requested
	// anchor.
	ErrNoAnchor = errors.New("jamtest: no such anchor")
	// ErrNotFinal is returned if a proof is requested for a block that no
	// service keeps on the final chain.
	ErrNotFinal = errors.New("jamtest: not final")
	// ErrNotYielded is returned if a proof through a yield is requested for a block
	// that was not the last one of its call.
	ErrNotYielded = errors.New("jamtest: not yielded")
	// ErrNoServices is returned if Config.Genesis is nil.
	ErrNoServices = errors.New("jamtest: the chain has no services")
	// ErrNotKillable is returned by [Chain.Kill].
	ErrNotKillable = errors.New("jamtest: package cannot be killed")
	// ErrRunning is returned by [Driver.Run] while another Run is active.
	ErrRunning = errors.New("jamtest: driver is running")
)

// These are wrapped by [Chain.Reportable]: why a block must not report a package.
var (
	// ErrAnchorNotRecent means that the anchor is not among the last H blocks
	// of this chain (GP 11.33).
	ErrAnchorNotRecent = errors.New("jamtest: anchor is not recent")
	// ErrAnchorRoots means that the state root or the BEEFY root of the context
	// is not the anchor's (GP 11.33).
	ErrAnchorRoots = errors.New("jamtest: anchor has other roots")
	// ErrLookupAnchor means that the lookup anchor is too old or not an
	// ancestor (GP 11.34, 11.35).
	ErrLookupAnchor = errors.New("jamtest: lookup anchor is too old or not an ancestor")
	// ErrDuplicate means that the package is in recent history, on a core, in
	// the ready queue or accumulated (GP 11.36 to 11.38).
	ErrDuplicate = errors.New("jamtest: package was reported before")
	// ErrPrerequisite means that a prerequisite was not reported in this block
	// or the last H blocks (GP 11.39).
	ErrPrerequisite = errors.New("jamtest: prerequisite is not in recent history")
	// ErrCoreInactive means that too few validators are active to serve the core (GP
	// 0.8.0, 11.4).
	ErrCoreInactive = errors.New("jamtest: core is inactive")
	// ErrCoreEngaged means that another report occupies the core (GP 11.29).
	ErrCoreEngaged = errors.New("jamtest: core is engaged")
)

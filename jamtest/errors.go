package jamtest

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of [Config.Validate].
	ErrInvalidConfig = errors.New("jamtest: invalid config")
	// ErrRefused is wrapped when a guarantor would refuse a package at once for what is in it.
	ErrRefused = errors.New("jamtest: package refused")
	// ErrUnknownBlock is wrapped when a block is named that the chain never had, or has forgotten.
	ErrUnknownBlock = errors.New("jamtest: unknown block")
	// ErrNoAnchor is wrapped when the best chain is too short for the anchor that was asked for.
	ErrNoAnchor = errors.New("jamtest: no such anchor")
	// ErrNotFinal is wrapped when a proof is asked for what no service has finally taken.
	ErrNotFinal = errors.New("jamtest: not final")
	// ErrNoCommitments is wrapped when a proof is asked of a chain whose services commit to nothing.
	ErrNoCommitments = errors.New("jamtest: services do not commit")
	// ErrNotKillable is wrapped by the errors of [Chain.Kill].
	ErrNotKillable = errors.New("jamtest: package cannot be killed")
	// ErrRunning is returned by [Driver.Run] while another Run goes on.
	ErrRunning = errors.New("jamtest: driver is running")
)

// These are wrapped by [Chain.Reportable]: why a block must not report a package.
var (
	// ErrAnchorNotRecent: the anchor is not among the last H blocks of this chain (GP 11.33).
	ErrAnchorNotRecent = errors.New("jamtest: anchor is not recent")
	// ErrAnchorRoots: the context's state root or BEEFY root is not the anchor's (GP 11.33).
	ErrAnchorRoots = errors.New("jamtest: anchor has other roots")
	// ErrLookupAnchor: the lookup anchor is too old or not an ancestor (GP 11.34, 11.35).
	ErrLookupAnchor = errors.New("jamtest: lookup anchor is too old or not an ancestor")
	// ErrDuplicate: the package is in recent history, on a core, in the ready queue or accumulated (GP 11.36 to 11.38).
	ErrDuplicate = errors.New("jamtest: package was reported before")
	// ErrPrerequisite: a prerequisite was not reported in this block or the last H (GP 11.39).
	ErrPrerequisite = errors.New("jamtest: prerequisite is not in recent history")
	// ErrCoreEngaged: another report occupies the core (GP 11.29).
	ErrCoreEngaged = errors.New("jamtest: core is engaged")
)

package bundlequeue

// rule is one of the queue's safety rules. All of them are always in force, except in tests: these switch one off at a time
// and see that the model checker or the simulation notices. Each stands where it is named, with its reason.
type rule uint8

const (
	noRule rule = iota
	// ruleAllDead: a new version only when every earlier one that may be out is dead on the best chain.
	ruleAllDead
	// ruleAnchorAtEvidence: a new version is anchored at the block by which all earlier ones are dead, or later.
	ruleAnchorAtEvidence
	// ruleFloor: after a failure nothing is anchored before the block by which all failed versions are dead.
	ruleFloor
	// ruleCheckBuilt: a package that a builder made is checked against its request and against the chain as it is by then.
	ruleCheckBuilt
	// ruleSentForEver: a version counts as out from the moment its first Send effect is returned.
	ruleSentForEver
	// ruleNewHash: a package hash serves one version only.
	ruleNewHash
	// ruleNamePredecessor: a package names its predecessor's live version unless that is accumulated.
	ruleNamePredecessor
	// ruleLeaveOutWhereDone: the predecessor is left out only if it is accumulated on the chain of the anchor.
	ruleLeaveOutWhereDone
	// ruleRecentPredecessor: a package is not built on a predecessor whose report has left recent history (GP 11.39).
	ruleRecentPredecessor
	// rulePredecessorLeft: a package leaves after its predecessor's live version.
	rulePredecessorLeft
	// ruleOneCore: no two bundles under way share a core.
	ruleOneCore
	// ruleFirstWins: no other version is built or sent while one is reported or accumulated.
	ruleFirstWins
	// ruleFailOnFinal: a bundle fails only when its versions are dead on the finalized chain.
	ruleFailOnFinal
	// ruleFailLater: with a bundle fail all after it, whose pre-state is gone.
	ruleFailLater
	// ruleFinalOnFinal: a bundle is final only when its accumulation is.
	ruleFinalOnFinal
	// ruleReviveLoses: a build that is under way is given up when an earlier version comes back to life.
	ruleReviveLoses
	numRules
)

// keeps reports whether a rule is in force.
func (q *Queue[B]) keeps(r rule) bool { return q.broken != r }

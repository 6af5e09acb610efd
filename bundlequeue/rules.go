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
	// ruleNeverNewest: nothing is anchored to the newest block, whose state root nobody knows before its child.
	ruleNeverNewest
	// ruleCheckBuilt: a package that a builder made is checked against its request and against the chain as it is by then.
	ruleCheckBuilt
	// ruleNewHash: a package hash serves one version only.
	ruleNewHash
	// ruleSentForEver: a version counts as out from the moment its first Send effect is returned.
	ruleSentForEver
	// rulePredecessorLive: nothing is built while its predecessor has no live version.
	rulePredecessorLive
	// ruleNamePredecessor: a package names its predecessor's live version unless that is accumulated.
	ruleNamePredecessor
	// ruleLeaveOutWhereDone: the predecessor is left out only if it is accumulated on the chain of the anchor.
	ruleLeaveOutWhereDone
	// ruleOneCore: no two bundles under way share a core.
	ruleOneCore
	// ruleFailOnFinal: a bundle fails only when its versions are dead on the finalized chain, so on every chain to come.
	ruleFailOnFinal
	// ruleFinalOnFinal: a bundle is final only when its accumulation is.
	ruleFinalOnFinal
	numRules
)

// keeps reports whether a rule is in force.
func (q *Queue[B]) keeps(r rule) bool { return q.broken != r }

package bundlequeue

// BreakLeaveOut switches off the rule that a predecessor is left out only where it is accumulated.
func BreakLeaveOut[B any](q *Queue[B]) { q.broken = ruleLeaveOutWhereDone }

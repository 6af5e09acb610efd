package told_test

import "testing"

// TestKnownFailures holds the ways in which queues that go by the clock are known to execute
// transactions twice, to lose them or to stop. Package bundlequeue has the others.
func TestKnownFailures(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a time-out strikes a younger bundle":               timeoutBumpsYounger,
		"an event between Dequeue and MarkSubmitted":        eventBetween,
		"the time-out runs from the first send":             timeoutFromFirstSend,
		"accumulated after the time-out":                    lateAccumulation,
		"a late guarantee moves an accumulated bundle back": lateGuarantee,
		"packages of others cost memory":                    foreignIsFree,
	} {
		t.Run(name, test)
	}
}

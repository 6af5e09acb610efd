package service

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq/canonical/proof"
)

// scenarios returns the shared cases of the service, each with the outcome of the model.
func scenarios() (cases []sharedCase) {
	add := func(name string, i invocation, want outcome) {
		cases = append(cases, sharedCase{Name: name, invocation: i, Want: want})
	}
	for _, s := range refineScenarios() {
		add("refine: "+s.name, s.invocation(), s.outcome())
	}
	for _, s := range accumulateScenarios() {
		add("accumulate: "+s.name, s.invocation(), s.outcome())
	}
	poor := call("", at9(), next(1)).invocation()
	poor.Writes = 2
	add("accumulate: the balance suffices for two writes", poor, outcome{Status: "panic"})
	return cases
}

type refineScenario struct {
	name string
	refining
}

func refineScenarios() []refineScenario {
	c := block(5)
	header := EncodeHeader(c)
	return []refineScenario{
		{"a header alone", refining{header, c.Package, 1, 0}},
		{"a block after the header", refining{append(slices.Clone(header), make([]byte, 1000)...), c.Package, 340, 15}},
		{"one byte too short", refining{header[:HeaderSize-1], c.Package, 1, 0}},
		{"block 0", refining{append(make([]byte, 8), header[8:]...), c.Package, 1, 0}},
		{"no payload", refining{nil, c.Package, 1, 0}},
	}
}

type accumulateScenario struct {
	name string
	accumulating
}

func accumulateScenarios() []accumulateScenario {
	withTransfer := call("a transfer before a block", at9(), next(1))
	withTransfer.inputs = append([]hexutil.Bytes{encodeTransfer(5)}, withTransfer.inputs...)
	return []accumulateScenario{
		call("nothing", at9()),
		call("one block", at9(), next(1)),
		call("two blocks in order", at9(), next(1), next(2)),
		call("two blocks in the other order", at9(), next(2), next(1)),
		call("a block that waits", at9(), next(3)),
		call("a block that waits on the present root", at9(), nextWith(2, func(c *proof.Commitment) { c.PreRoot = block(9).PostRoot })),
		call("another package with a block that waits", at9(), next(3), nextWith(3, func(c *proof.Commitment) { c.Package = block(1).Package })),
		call("the last number that may wait", at9(), next(Ahead)),
		call("the first number that may not", at9(), next(Ahead+1)),
		call("the last block again", at9(), next(0)),
		call("another state root", at9(), nextWith(1, fork)),
		call("a wrong update that waits stops nothing", at9(), nextWith(2, fork), next(2), next(1)),
		call("another authorizer", at9(), wrong(func(o *Operand) { o.Authorizer = label("stranger", 0) })),
		call("the output of another package", at9(), wrong(func(o *Operand) { o.Package = block(1).Package })),
		call("an error of refine", at9(), wrong(func(o *Operand) { o.Output = nil })),
		call("an output that is too long", at9(), wrong(func(o *Operand) { o.Output = append(o.Output, 0) })),
		withTransfer,
		call("the oldest block is removed", longAfter9(), next(History+1)),
		call("a package whose first block is removed", longAfter9(), next(History+1), next(History+2),
			nextWith(History+3, func(c *proof.Commitment) { c.Package = block(9 + 2).Package }), next(History+4)),
		call("not installed", Storage{commitmentKey(0): at9()[commitmentKey(9)]}, next(1)),
	}
}

// at9 is the storage of a service that begins after block 9.
func at9() Storage { return Genesis{Authorizer: owner, Block: block(9)}.Storage() }

// longAfter9 is the storage History blocks later. Of the blocks between, it has the first two.
func longAfter9() Storage {
	s := Genesis{Authorizer: owner, Block: block(9 + History)}.Storage()
	for _, c := range []proof.Commitment{block(9), block(9 + 1), block(9 + 2)} {
		s[commitmentKey(c.Number)] = c.Encode()
		s[string(MarkKey(c.Package))] = []byte{1, 2, 3, 4}
		s[string(EntryKey(c.Number-1))] = []byte("entry")
	}
	return s
}

// next returns the operand with block 9+n, and nextWith the one with a changed block.
func next(n uint64) Operand { return nextWith(n, func(*proof.Commitment) {}) }

func nextWith(n uint64, change func(*proof.Commitment)) Operand {
	c := block(9 + n)
	change(&c)
	return Operand{Package: c.Package, Authorizer: owner, Output: updateOf(c)}
}

func fork(c *proof.Commitment) { c.PreRoot = common.Hash{1} }

// wrong returns a changed operand with block 10.
func wrong(change func(*Operand)) Operand {
	o := next(1)
	change(&o)
	return o
}

// call returns a call of accumulate. The trace of each authorization imitates an output.
func call(name string, storage Storage, operands ...Operand) accumulateScenario {
	a := accumulating{storage: storage, slot: 70_000, operands: operands}
	for _, o := range operands {
		a.inputs = append(a.inputs, encodeOperand(o, 100_000, 2, next(1).Output))
	}
	return accumulateScenario{name, a}
}

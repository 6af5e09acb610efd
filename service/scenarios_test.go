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
		call("all updates that may wait for a number", at9(), rivals(2, Rivals)...),
		call("one more takes the place of the first", at9(), rivals(2, Rivals+1)...),
		call("the first comes again, after it lost its place", at9(), append(rivals(2, Rivals+1), rivals(2, 1)...)...),
		call("updates on other state roots go in their turn", at9(), append(rivals(2, Rivals), next(1))...),
		call("the update with the right state root among others", at9(), append(rivals(2, 3), next(2), next(1), next(3))...),
		call("another authorizer", at9(), wrong(func(o *Operand) { o.Authorizer = label("stranger", 0) })),
		call("the output of another package", at9(), wrong(func(o *Operand) { o.Package = block(1).Package })),
		call("an error of refine", at9(), wrong(func(o *Operand) { o.Output = nil })),
		call("an output that is too long", at9(), wrong(func(o *Operand) { o.Output = append(o.Output, 0) })),
		withTransfer,
		call("the oldest block is removed", longAfter9(), next(History+1)),
		call("a package whose first block is removed", longAfter9(), next(History+1), next(History+2),
			nextWith(History+3, func(c *proof.Commitment) { c.Package = block(9 + 2).Package }), next(History+4)),
		call("a commitment that is malformed stays", with(longAfter9(), commitmentKey(10), []byte("malformed")), next(History+1)),
		call("a block that waits beside an empty list", with(at9(), string(waitingKey(9+3)), []byte{}), next(3)),
		call("a block before an empty list", with(at9(), string(waitingKey(9+2)), []byte{}), next(1)),
		call("half an update that waits", with(at9(), string(waitingKey(9+3)), make([]byte, 100)), next(3)),
		call("more updates than may wait", with(at9(), string(waitingKey(9+3)), make([]byte, Rivals*updateSize+1)), next(3)),
		call("a number of the last block with 7 bytes", with(at9(), string(CountKey()), make([]byte, 7)), next(1)),
		call("a number of the last block with 9 bytes", with(at9(), string(CountKey()), append([]byte{9}, make([]byte, 8)...)), next(1)),
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

// with changes an entry of a storage.
func with(s Storage, key string, value []byte) Storage {
	s[key] = value
	return s
}

// rivals returns operands with block 9+n on wrong state roots.
func rivals(n uint64, count uint64) (out []Operand) {
	for i := range count {
		out = append(out, nextWith(n, func(c *proof.Commitment) { c.PreRoot = label("wrong", i) }))
	}
	return out
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

package service

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/crypto/blake2b"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
)

// plenty is more gas than any call needs.
const plenty = 10_000_000

// owner is the authorizer of the drawn services.
var owner = label("owner", 0)

// label returns a hash that is the same for the same arguments.
func label(text string, n uint64) common.Hash {
	return blake2b.Sum256(binary.LittleEndian.AppendUint64([]byte(text), n))
}

// refining is a call of refine, accumulating one of accumulate, with the arguments of the model.
type refining struct {
	payload    []byte
	pkg        jamq.PackageHash
	core, item uint64
}

type accumulating struct {
	storage  Storage
	slot     jamq.Slot
	operands []Operand
	inputs   []hexutil.Bytes // the operands among transfers
}

func (r refining) invocation() invocation {
	arguments := slices.Concat(encodeNaturals(r.core, r.item, 7, uint64(len(r.payload))), r.payload, r.pkg[:])
	return invocation{Entry: 0, Gas: plenty, Arguments: arguments, Payload: r.payload, Item: r.item, Writes: -1}
}

func (a accumulating) invocation() invocation {
	return invocation{Entry: 5, Gas: plenty, Arguments: encodeNaturals(uint64(a.slot), 7, uint64(len(a.inputs))),
		Inputs: a.inputs, Storage: entries(a.storage), Writes: -1}
}

// outcome returns the model's result.
func (r refining) outcome() outcome {
	output, err := Refine(r.payload, r.pkg)
	if err != nil {
		return outcome{Status: "panic"}
	}
	return outcome{Status: "halt", Output: hexutil.Encode(output)}
}

func (a accumulating) outcome() outcome {
	changes, yield, err := Accumulate(a.storage.Get, a.slot, a.operands)
	if err != nil {
		return outcome{Status: "panic"}
	}
	after := maps.Clone(a.storage)
	after.Write(changes)
	out := outcome{Status: "halt", Storage: entries(after), Output: "0x"}
	if yield != nil {
		out.Output = yield.Hex()
	}
	return out
}

// drawRefining returns a payload that is mostly a header and something after it, sometimes one that
// is too short or has the number 0.
func drawRefining(t *rapid.T) refining {
	payload := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
	if len(payload) >= 8 && rapid.IntRange(0, 9).Draw(t, "zero") == 0 {
		clear(payload[:8])
	}
	return refining{payload, jamq.PackageHash(label("package", rapid.Uint64().Draw(t, "package"))),
		rapid.Uint64Max(340).Draw(t, "core"), rapid.Uint64Max(15).Draw(t, "item")}
}

// drawAccumulating returns a call with a chain of blocks in any order, among updates that are
// wrong.
func drawAccumulating(t *rapid.T) accumulating {
	last := rapid.OneOf(rapid.Just[uint64](0), rapid.Uint64Range(1, 5), rapid.Uint64Range(History-6, History+6),
		rapid.Uint64Max(1<<63)).Draw(t, "last")
	a := accumulating{storage: drawStorage(t, last), slot: jamq.Slot(rapid.Uint32().Draw(t, "slot"))}
	a.addOperands(t, last)
	return a
}

// block returns the update to a number on the chain that is right.
func block(number uint64) proof.Commitment {
	return proof.Commitment{Number: number, Hash: label("hash", number), PreRoot: label("root", number-1), PostRoot: label("root", number),
		TransactionsRoot: label("transactions", number), Package: jamq.PackageHash(label("package", number))}
}

func updateOf(c proof.Commitment) []byte {
	yield := c.Yield()
	return append(c.Encode(), yield[:]...)
}

// drawStorage returns a storage whose last block is given, with old blocks that are about to be
// forgotten, and updates that wait.
func drawStorage(t *rapid.T, last uint64) Storage {
	s := Genesis{Authorizer: owner, Block: block(last)}.Storage()
	if last >= History && rapid.Bool().Draw(t, "old blocks") {
		for n := last - History; n < last-History+4; n++ {
			old := block(n)
			s[commitmentKey(n)] = old.Encode()
			s[string(MarkKey(old.Package))] = []byte{1, 2, 3, 4}
			s[string(EntryKey(n-1))] = []byte("entry")
		}
	}
	for _, d := range rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(2, 4), rapid.Uint64Range(2, Ahead)), 0, 4).Draw(t, "waiting") {
		c := block(last + d)
		var list []byte
		for i := range rapid.Uint64Range(1, Rivals).Draw(t, "rivals") {
			list = append(list, updateOf(c)...)
			c.PreRoot = label("wrong", i)
		}
		switch rapid.IntRange(0, 9).Draw(t, "tail") { // the service would not write these
		case 0:
			list = append(list, rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "noise")...)
		case 1:
			list = []byte{}
		}
		s[string(waitingKey(c.Number))] = list
	}
	switch rapid.IntRange(0, 40).Draw(t, "broken") {
	case 3:
		s[string(CountKey())] = rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "count")
	case 0:
		delete(s, string(AuthorizerKey()))
	case 1:
		delete(s, commitmentKey(last))
	case 2:
		s[string(AuthorizerKey())] = owner[:31]
	}
	return s
}

// addOperands adds the next blocks and wrong updates, with transfers between them.
func (a *accumulating) addOperands(t *rapid.T, last uint64) {
	var updates []proof.Commitment
	for i := range rapid.Uint64Range(0, 6).Draw(t, "blocks") {
		updates = append(updates, block(last+1+i))
	}
	for range rapid.IntRange(0, 4).Draw(t, "strays") {
		c := block(last + rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Uint64Range(Ahead-1, Ahead+2), rapid.Uint64()).Draw(t, "number"))
		c.PreRoot = rapid.SampledFrom([]common.Hash{c.PreRoot, c.PreRoot, label("wrong", 0), label("wrong", 1), label("wrong", 2), label("wrong", 3), label("root", last)}).Draw(t, "root")
		if rapid.Bool().Draw(t, "another package") {
			c.Package = jamq.PackageHash(label("again", rapid.Uint64Range(0, 1).Draw(t, "again")))
		}
		updates = append(updates, c)
	}
	if len(updates) > 0 {
		updates = rapid.Permutation(updates).Draw(t, "order")
	}
	for _, c := range updates {
		a.addOperand(t, c)
		if rapid.IntRange(0, 7).Draw(t, "transfer") == 0 {
			a.inputs = append(a.inputs, encodeTransfer(rapid.Uint64().Draw(t, "amount")))
		}
	}
}

// addOperand adds an update as an operand, rarely with something wrong.
func (a *accumulating) addOperand(t *rapid.T, c proof.Commitment) {
	o := Operand{Package: c.Package, Authorizer: owner, Output: updateOf(c)}
	failure := byte(0)
	switch rapid.IntRange(0, 20).Draw(t, "operand") {
	case 0:
		o.Authorizer = label("stranger", 0)
	case 1:
		o.Authorizer[31] ^= 1
	case 2:
		o.Package[0] ^= 1
	case 3:
		o.Output = o.Output[:rapid.IntRange(0, 199).Draw(t, "length")]
	case 4:
		o.Output = append(o.Output, rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "more")...)
	case 5:
		o.Output, failure = nil, byte(rapid.IntRange(1, 6).Draw(t, "failure"))
	case 6:
		o.Output = rapid.SliceOfN(rapid.Byte(), 200, 200).Draw(t, "noise")
	}
	a.operands = append(a.operands, o)
	trace := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "trace")
	if rapid.IntRange(0, 3).Draw(t, "imitate") == 0 {
		trace = updateOf(c)
	}
	gas := rapid.OneOf(rapid.Uint64Range(0, 1<<21), rapid.Uint64()).Draw(t, "gas")
	a.inputs = append(a.inputs, encodeOperand(o, gas, failure, trace))
}

// following returns the call after an outcome, on the storage that it left.
func (a accumulating) following(after outcome, t *rapid.T) accumulating {
	last := uint64(0)
	if count := after.Storage[string(CountKey())]; count != nil {
		last = binary.LittleEndian.Uint64(count)
	}
	next := accumulating{storage: Storage(maps.Clone(after.Storage)), slot: a.slot + 1}
	next.addOperands(t, last)
	return next
}

package canonical_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/canonical"
)

// fact is the naive model of a block.
type fact struct {
	head                          canonical.Head
	accumulated, justified, final bool
	learned                       bool
}

// model is the page's definitions word by word: facts about all blocks since genesis, and loops
// over all of them.
type model struct{ facts []fact }

// run returns the highest block up to which all are so.
func (m *model) run(is func(fact) bool) canonical.Head {
	top := 0
	for top+1 < len(m.facts) && is(m.facts[top+1]) {
		top++
	}
	return m.facts[top].head
}

func (m *model) heads() canonical.Heads {
	return canonical.Heads{
		Earliest:  m.facts[0].head,
		Pending:   m.facts[len(m.facts)-1].head,
		Latest:    m.run(func(f fact) bool { return f.accumulated }),
		Safe:      m.run(func(f fact) bool { return f.justified }),
		Finalized: m.run(func(f fact) bool { return f.final }),
	}
}

// find returns the retained block with a commitment, or -1. The number of a
// forgotten block may belong to another block by now.
func (m *model) find(commitment common.Hash, base uint64) int {
	for i := len(m.facts) - 1; i >= int(base); i-- {
		if m.facts[i].head.Commitment == commitment {
			return i
		}
	}
	return -1
}

// machine drives a tracker and the model with the same events.
type machine struct {
	t         *rapid.T
	tracker   *canonical.Tracker
	model     model
	retain    uint64
	made      uint16
	finalized uint64
}

// fresh returns a block of a number that differs from all others; now and then without a
// commitment.
func (m *machine) fresh(number uint64) canonical.Head {
	m.made++
	h := canonical.Head{Number: number, Hash: m.name(1), Root: m.name(2)}
	if rapid.IntRange(0, 3).Draw(m.t, "anonymous") > 0 {
		h.Commitment = m.name(3)
	}
	return h
}

func (m *machine) name(kind byte) common.Hash {
	return common.Hash{byte(m.made), byte(m.made >> 8), kind}
}

func (m *machine) number() uint64 {
	return rapid.Uint64Range(0, uint64(len(m.model.facts))).Draw(m.t, "number")
}

// base is the oldest block that is retained.
func (m *machine) base() uint64 { return m.finalized - min(m.finalized, m.retain) }

// word returns an item as a queue may name it: by its number alone, with the
// commitment of the block, or with that of a removed block.
func (m *machine) word() canonical.Item {
	it := canonical.Item{Number: m.number()}
	switch rapid.IntRange(0, 2).Draw(m.t, "word") {
	case 1:
		if it.Number < uint64(len(m.model.facts)) {
			it.Commitment = m.model.facts[it.Number].head.Commitment
		}
	case 2:
		it.Commitment = m.fresh(it.Number).Commitment
	}
	return it
}

// known checks the error about a block that is not tracked, or that is not the item's, and returns
// the fact about one that is.
func (m *machine) known(it canonical.Item, err error) *fact {
	if it.Number < m.base() || it.Number >= uint64(len(m.model.facts)) {
		require.ErrorIs(m.t, err, canonical.ErrUnknownBlock)
		return nil
	}
	f := &m.model.facts[it.Number]
	if none := (common.Hash{}); it.Commitment != none && f.head.Commitment != none && it.Commitment != f.head.Commitment {
		require.ErrorIs(m.t, err, canonical.ErrConflict)
		return nil
	}
	return f
}

func (m *machine) execute(*rapid.T) {
	pending := m.model.facts[len(m.model.facts)-1].head
	on := pending
	if rapid.IntRange(0, 4).Draw(m.t, "stale") == 0 {
		on.Root[0]++
	}
	var batch []canonical.Head
	for i := range rapid.IntRange(0, 3).Draw(m.t, "batch") {
		batch = append(batch, m.fresh(pending.Number+1+uint64(i)))
	}
	spoil := len(batch) > 0 && rapid.IntRange(0, 4).Draw(m.t, "gap") == 0
	if spoil {
		batch[len(batch)-1].Number++
	}
	err := m.tracker.ExecutedBatch(on, batch)
	switch {
	case on != pending:
		require.ErrorIs(m.t, err, canonical.ErrStaleParent)
	case spoil:
		require.ErrorIs(m.t, err, canonical.ErrNotNext)
	default:
		require.NoError(m.t, err)
		for _, h := range batch {
			m.model.facts = append(m.model.facts, fact{head: h})
		}
	}
}

func (m *machine) accumulate(*rapid.T) {
	it := m.word()
	if it.Number >= uint64(len(m.model.facts)) {
		return // see item
	}
	_, err := m.tracker.Accumulate(it)
	if f := m.known(it, err); f != nil {
		require.NoError(m.t, err)
		f.accumulated = true
	}
}

// item accumulates by the three-step lookup: the block itself, one without a commitment, another of
// that number, one of another number.
func (m *machine) item(*rapid.T) {
	number := m.number()
	own := m.fresh(number)
	it := canonical.Item{Number: number, Commitment: own.Commitment, Hash: own.Hash, Root: own.Root}
	if number >= m.base() && number < uint64(len(m.model.facts)) && rapid.Bool().Draw(m.t, "ours") {
		it.Commitment = m.model.facts[number].head.Commitment
		it.Number += rapid.Uint64Range(0, 2).Draw(m.t, "renumbered")
	}
	before := m.model.heads().Latest
	taken, err := m.tracker.Accumulate(it)

	at, source := -1, canonical.FromCommitment
	if it.Commitment != (common.Hash{}) {
		at = m.model.find(it.Commitment, m.base())
	}
	if at < 0 {
		switch {
		case it.Number < m.base():
			require.ErrorIs(m.t, err, canonical.ErrUnknownBlock)
			return
		case it.Number > uint64(len(m.model.facts)):
			require.ErrorIs(m.t, err, canonical.ErrNotNext)
			return
		case it.Number == uint64(len(m.model.facts)):
			source = canonical.FromItem
			learned := canonical.Head{Number: it.Number, Hash: it.Hash, Root: it.Root, Commitment: it.Commitment}
			m.model.facts = append(m.model.facts, fact{head: learned, learned: true})
		case it.Commitment != (common.Hash{}) && m.model.facts[it.Number].head.Commitment != (common.Hash{}):
			require.ErrorIs(m.t, err, canonical.ErrConflict)
			return
		default:
			source = canonical.FromNumber
		}
		at = int(it.Number)
	}
	require.NoError(m.t, err)
	m.model.facts[at].accumulated = true
	latest := m.model.heads().Latest
	require.Equal(m.t, canonical.Taken{Block: m.model.facts[at].head, Source: source, Latest: latest, Moved: latest != before}, taken)
	require.Equal(m.t, source == canonical.FromItem, source.Warning() != "")
}

func (m *machine) retract(*rapid.T) {
	it := m.word()
	plan, err := m.tracker.Retract(it)
	f := m.known(it, err)
	switch {
	case f == nil:
	case f.final:
		require.ErrorIs(m.t, err, canonical.ErrFinal)
	case f.learned:
		require.NoError(m.t, err)
		m.cut(it.Number, plan)
	default:
		require.NoError(m.t, err)
		require.Empty(m.t, plan.Undone)
		f.accumulated, f.justified = false, false
	}
}

// cut removes the blocks from a number on, and checks the plan.
func (m *machine) cut(number uint64, plan canonical.Plan) {
	require.Equal(m.t, m.model.facts[number-1].head, plan.On)
	require.Len(m.t, plan.Undone, len(m.model.facts)-int(number))
	for i, h := range plan.Undone {
		require.Equal(m.t, m.model.facts[int(number)+i].head, h)
	}
	m.model.facts = m.model.facts[:number]
}

func (m *machine) justify(*rapid.T) {
	it := m.word()
	_, _, err := m.tracker.Justified(it)
	if it.Number < m.base() {
		require.NoError(m.t, err, "old news")
	} else if f := m.known(it, err); f != nil {
		require.NoError(m.t, err)
		f.accumulated, f.justified = true, true
	}
}

func (m *machine) finalize(*rapid.T) {
	it := m.word()
	_, _, err := m.tracker.Finalized(it)
	if it.Number < m.base() {
		require.NoError(m.t, err, "old news")
	} else if f := m.known(it, err); f != nil {
		require.NoError(m.t, err)
		f.accumulated, f.justified, f.final = true, true, true
	}
}

func (m *machine) fail(*rapid.T) {
	it := m.word()
	plan, err := m.tracker.Fail(it)
	if it.Number < m.base() {
		require.ErrorIs(m.t, err, canonical.ErrFinal)
		return
	}
	switch f := m.known(it, err); {
	case f == nil:
	case f.final:
		require.ErrorIs(m.t, err, canonical.ErrFinal)
	default:
		require.NoError(m.t, err)
		m.cut(it.Number, plan)
	}
}

// check is called after every event, also after one that was refused.
func (m *machine) check(*rapid.T) {
	heads, want := m.tracker.Heads(), m.model.heads()
	require.Equal(m.t, want, heads)
	require.GreaterOrEqual(m.t, heads.Finalized.Number, m.finalized, "finalized never moves back")
	m.finalized = heads.Finalized.Number
	for tag, h := range map[canonical.Tag]canonical.Head{
		canonical.Earliest: want.Earliest, canonical.Pending: want.Pending, canonical.Latest: want.Latest,
		canonical.Safe: want.Safe, canonical.Finalized: want.Finalized,
	} {
		got, err := m.tracker.Resolve(tag)
		require.NoError(m.t, err)
		require.Equal(m.t, h, got)
	}
	for number := range uint64(len(m.model.facts) + 1) {
		got, err := m.tracker.Resolve(canonical.Number(number))
		if retained := number == 0 || number >= m.base() && number < uint64(len(m.model.facts)); !retained {
			require.ErrorIs(m.t, err, canonical.ErrUnknownBlock)
			continue
		}
		require.NoError(m.t, err)
		require.Equal(m.t, m.model.facts[number].head, got)
	}
}

// C1: under any events the heads are those of the naive definition; latest never runs past a hole,
// finalized never moves back, and a refused call changes nothing.
func TestC1Contiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t, retain: rapid.Uint64Range(0, 4).Draw(t, "retain")}
		genesis := m.fresh(0)
		m.tracker = canonical.New(genesis, m.retain)
		m.model.facts = []fact{{head: genesis, accumulated: true, justified: true, final: true}}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "execute": m.execute, "execute more": m.execute, "accumulate": m.accumulate, "item": m.item,
			"retract": m.retract, "justify": m.justify, "finalize": m.finalize, "fail": m.fail,
		})
	})
}

// A late accumulation of a block that was given up: the chain is right, and the block that took its
// number has to go.
func TestLateAccumulation(t *testing.T) {
	name := func(b byte) common.Hash { return common.Hash{b} }
	block := func(n uint64, b byte) canonical.Head {
		return canonical.Head{Number: n, Hash: name(b), Root: name(b + 100), Commitment: name(b)}
	}
	tr := canonical.New(canonical.Head{}, 10)
	require.NoError(t, tr.ExecutedBatch(canonical.Head{}, []canonical.Head{block(1, 1), block(2, 2)}))
	_, err := tr.Fail(canonical.Item{Number: 1})
	require.NoError(t, err)
	require.NoError(t, tr.ExecutedBatch(canonical.Head{}, []canonical.Head{block(1, 11), block(2, 12)}))

	late := canonical.Item{Number: 1, Commitment: name(1), Hash: name(1), Root: name(101)}
	before := tr.Heads()
	_, err = tr.Accumulate(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, _, err = tr.Justified(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, _, err = tr.Finalized(late)
	require.ErrorIs(t, err, canonical.ErrConflict, "the block that has its number is another")
	_, err = tr.Retract(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, err = tr.Fail(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	require.Equal(t, before, tr.Heads())
	plan, err := tr.Fail(canonical.Item{Number: 1})
	require.NoError(t, err)
	require.Equal(t, []canonical.Head{block(1, 11), block(2, 12)}, plan.Undone)
	taken, err := tr.Accumulate(late)
	require.NoError(t, err)
	require.Equal(t, canonical.Taken{Block: block(1, 1), Source: canonical.FromItem, Latest: block(1, 1), Moved: true}, taken)
	require.NotEmpty(t, taken.Source.Warning())
	require.NoError(t, tr.ExecutedBatch(block(1, 1), []canonical.Head{block(2, 22)}))

	// The fork is abandoned, and the blocks on it are removed too.
	plan, err = tr.Retract(canonical.Item{Number: 1})
	require.NoError(t, err)
	require.Equal(t, canonical.Plan{On: canonical.Head{}, Undone: []canonical.Head{block(1, 1), block(2, 22)}}, plan)
	require.ErrorIs(t, tr.ExecutedBatch(block(1, 1), nil), canonical.ErrStaleParent)
}

// Two blocks must not have the same commitment.
func TestCommitmentTwice(t *testing.T) {
	tr := canonical.New(canonical.Head{}, 10)
	one := canonical.Head{Number: 1, Commitment: common.Hash{1}}
	two := canonical.Head{Number: 2, Commitment: common.Hash{1}}
	err := tr.ExecutedBatch(canonical.Head{}, []canonical.Head{one, two})
	require.ErrorIs(t, err, canonical.ErrConflict)
	require.Zero(t, tr.Heads().Pending.Number, "all or none")
	require.NoError(t, tr.Executed(one), "the refused batch has left nothing behind")
	require.NoError(t, tr.Executed(canonical.Head{Number: 2}), "without a commitment nothing is twice")
}

// Safe is the host's to set, between finalized and latest.
func ExampleTracker_Justified() {
	t := canonical.New(canonical.Head{}, 10)
	for n := uint64(1); n <= 4; n++ {
		if err := t.Executed(canonical.Head{Number: n}); err != nil {
			panic(err)
		}
	}
	for n := uint64(1); n <= 3; n++ {
		if _, err := t.Accumulate(canonical.Item{Number: n}); err != nil {
			panic(err)
		}
	}
	for n := uint64(1); n <= 2; n++ {
		if _, _, err := t.Justified(canonical.Item{Number: n}); err != nil {
			panic(err)
		}
	}
	if _, _, err := t.Finalized(canonical.Item{Number: 1}); err != nil {
		panic(err)
	}
	h := t.Heads()
	fmt.Println("finalized", h.Finalized.Number, "safe", h.Safe.Number, "latest", h.Latest.Number, "pending", h.Pending.Number)
	// Output: finalized 1 safe 2 latest 3 pending 4
}

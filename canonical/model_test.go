package canonical_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/canonical"
)

// fact is the naive model of a block.
type fact struct {
	head               canonical.Head
	accumulated, final bool
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
		Pending:   m.facts[len(m.facts)-1].head,
		Latest:    m.run(func(f fact) bool { return f.accumulated }),
		Safe:      m.run(func(f fact) bool { return f.final }),
		Finalized: m.run(func(f fact) bool { return f.final }),
	}
}

// machine drives a tracker and the model with the same events.
type machine struct {
	t         *rapid.T
	tracker   *canonical.Tracker
	model     model
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

// base is the oldest block that the tracker knows: the finalized head.
func (m *machine) base() uint64 { return m.finalized }

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
	next := m.fresh(uint64(len(m.model.facts)))
	switch rapid.IntRange(0, 9).Draw(m.t, "spoiled") {
	case 0:
		next.Number++
		require.ErrorIs(m.t, m.tracker.Executed(next), canonical.ErrNotNext)
		return
	case 1:
		if last := m.model.facts[len(m.model.facts)-1].head; last.Commitment != (common.Hash{}) {
			next.Commitment = last.Commitment
			require.ErrorIs(m.t, m.tracker.Executed(next), canonical.ErrConflict)
			return
		}
	}
	require.NoError(m.t, m.tracker.Executed(next))
	m.model.facts = append(m.model.facts, fact{head: next})
}

func (m *machine) accumulate(*rapid.T) {
	it := m.word()
	latest, err := m.tracker.Accumulate(it)
	if f := m.known(it, err); f != nil {
		require.NoError(m.t, err)
		f.accumulated = true
		require.Equal(m.t, m.model.heads().Latest, latest)
	}
}

// renumber accumulates a block by its commitment, whatever number the item has.
func (m *machine) renumber(*rapid.T) {
	number := m.number()
	if number < m.base() || number >= uint64(len(m.model.facts)) {
		return
	}
	f := &m.model.facts[number]
	if f.head.Commitment == (common.Hash{}) {
		return
	}
	it := canonical.Item{Number: number + rapid.Uint64Range(0, 2).Draw(m.t, "renumbered"), Commitment: f.head.Commitment}
	_, err := m.tracker.Accumulate(it)
	require.NoError(m.t, err)
	f.accumulated = true
}

func (m *machine) retract(*rapid.T) {
	it := m.word()
	latest, err := m.tracker.Retract(it)
	f := m.known(it, err)
	switch {
	case f == nil:
	case f.final:
		require.ErrorIs(m.t, err, canonical.ErrFinal)
	default:
		require.NoError(m.t, err)
		f.accumulated = false
		require.Equal(m.t, m.model.heads().Latest, latest)
	}
}

func (m *machine) finalize(*rapid.T) {
	it := m.word()
	_, _, err := m.tracker.Finalized(it)
	if it.Number < m.base() {
		require.NoError(m.t, err, "old news")
	} else if f := m.known(it, err); f != nil {
		require.NoError(m.t, err)
		f.accumulated, f.final = true, true
	}
}

func (m *machine) fail(*rapid.T) {
	it := m.word()
	undone, err := m.tracker.Fail(it)
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
		require.Len(m.t, undone, len(m.model.facts)-int(it.Number))
		for i, h := range undone {
			require.Equal(m.t, m.model.facts[int(it.Number)+i].head, h)
		}
		m.model.facts = m.model.facts[:it.Number]
	}
}

// check is called after every event, also after one that was refused.
func (m *machine) check(*rapid.T) {
	heads, want := m.tracker.Heads(), m.model.heads()
	require.Equal(m.t, want, heads)
	require.GreaterOrEqual(m.t, heads.Finalized.Number, m.finalized, "finalized never moves back")
	m.finalized = heads.Finalized.Number
}

// C1: under any events the heads are those of the naive definition; latest never runs past a hole,
// finalized never moves back, and a refused call changes nothing.
func TestC1Contiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t}
		genesis := m.fresh(0)
		m.tracker = canonical.New(genesis)
		m.model.facts = []fact{{head: genesis, accumulated: true, final: true}}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "execute": m.execute, "execute more": m.execute, "accumulate": m.accumulate, "renumber": m.renumber,
			"retract": m.retract, "finalize": m.finalize, "fail": m.fail,
		})
	})
}

// A late call about a block that was given up never counts for the block that
// has its number now.
func TestLateAccumulation(t *testing.T) {
	block := func(n uint64, b byte) canonical.Head {
		return canonical.Head{Number: n, Hash: common.Hash{b}, Root: common.Hash{b + 100}, Commitment: common.Hash{b}}
	}
	tr := canonical.New(canonical.Head{})
	require.NoError(t, tr.Executed(block(1, 1)))
	require.NoError(t, tr.Executed(block(2, 2)))
	_, err := tr.Fail(canonical.Item{Number: 1})
	require.NoError(t, err)
	late := canonical.Item{Number: 1, Commitment: common.Hash{1}}
	_, err = tr.Accumulate(late)
	require.ErrorIs(t, err, canonical.ErrUnknownBlock)
	require.NoError(t, tr.Executed(block(1, 11)))

	before := tr.Heads()
	_, err = tr.Accumulate(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, _, err = tr.Finalized(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, err = tr.Retract(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	_, err = tr.Fail(late)
	require.ErrorIs(t, err, canonical.ErrConflict)
	require.Equal(t, before, tr.Heads())
}

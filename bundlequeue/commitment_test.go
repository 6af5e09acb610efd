package bundlequeue

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
)

// A block is named by a letter, and so is its parent.
func block(number uint64, parent, commitment byte) Enqueue {
	return Enqueue{Number: number, Parent: common.Hash{parent}, Commitment: common.Hash{commitment}, Bundle: []byte(string(rune(commitment)))}
}

// A bundle that was executed before a failure is refused, although its number
// is free again.
func TestParent(t *testing.T) {
	s := newScene(t, nil)
	require.Zero(t, s.q.Head())
	s.step(block(1, 'g', 'a'))
	s.step(block(2, 'a', 'b'))
	require.ErrorIs(t, s.try(block(3, 'a', 'c')), ErrWrongParent)
	s.step(GiveUp{Number: 1})
	require.Len(t, s.failed, 2)
	require.Equal(t, common.Hash{'b'}, s.failed[1].Commitment)
	require.Equal(t, common.Hash{'g'}, s.q.Head(), "the first bundle named it")
	require.ErrorIs(t, s.try(block(1, 'b', 'c')), ErrWrongParent)
	s.step(block(1, 'g', 'd'))
	require.ErrorIs(t, s.try(block(2, 'a', 'e')), ErrWrongParent)
	s.step(block(2, 'd', 'e'))
	require.Equal(t, common.Hash{'e'}, s.q.Head())
}

// Number, state and transactions of a bundle that is executed again after a
// failure may equal those of the failed one. Its commitment must not.
func TestCommitmentOfFailedBundle(t *testing.T) {
	s := newScene(t, nil)
	s.step(block(1, 'g', 'a'))
	require.ErrorIs(t, s.try(block(2, 'a', 'a')), ErrCommitmentUsed)
	s.step(GiveUp{Number: 1})
	s.killed()
	require.ErrorIs(t, s.try(block(1, 'g', 'a')), ErrCommitmentUsed)
	s.step(block(1, 'g', 'b'))
	pkg := s.run()[0]
	s.block(report(pkg, 0))
	final := s.block(accumulate(pkg, 0))
	require.NotEmpty(t, s.q.spent)
	s.step(FinalizedBlock{Hash: final})
	require.Empty(t, s.q.spent, "a parent before a final bundle is never the head again")
	require.ErrorIs(t, s.try(block(2, 'g', 'a')), ErrWrongParent)
	require.ErrorIs(t, s.try(block(2, 'b', 'b')), ErrCommitmentUsed)
}

// The memory of failed commitments is bounded.
func TestManyFailedCommitments(t *testing.T) {
	s := newScene(t, nil)
	for i := range maxSpent + 10 {
		s.q.spend(&item{commitment: common.Hash{1, byte(i), byte(i >> 8), byte(i >> 16)}})
	}
	require.Len(t, s.q.spent, maxSpent)
}

// A bundle behind a reservation fixes what may fill it.
func TestParentIsReserved(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.step(block(2, 'a', 'b'))
	require.ErrorIs(t, s.try(block(1, 'g', 'c')), ErrWrongParent)
	s.restart()
	require.ErrorIs(t, s.try(block(1, 'g', 'c')), ErrWrongParent)
	info, _ := s.q.Info(1)
	require.Zero(t, info.Commitment)
	s.step(block(1, 'g', 'a'))
	s.step(block(3, 'b', 'c'))
	require.Equal(t, common.Hash{'c'}, s.q.Head())
}

// The parent of the first bundle in the queue outlives the bundle before it.
func TestParentIsRetired(t *testing.T) {
	s := newScene(t, func(c *Config) { c.RetentionWindow = 0 })
	s.step(block(1, 'g', 'a'))
	pkg := s.run()[0]
	s.block(report(pkg, 0))
	s.step(FinalizedBlock{Hash: s.block(accumulate(pkg, 0))})
	require.Empty(t, s.q.items)
	s.restart()
	require.Equal(t, common.Hash{'a'}, s.q.Head())
	require.ErrorIs(t, s.try(block(2, 'g', 'b')), ErrWrongParent)
	require.ErrorIs(t, s.try(block(2, 'a', 'a')), ErrCommitmentUsed)
	s.step(block(2, 'a', 'b'))
}

// Bundles without commitments or parents are not checked.
func TestWithoutCommitments(t *testing.T) {
	s := newScene(t, nil)
	s.step(Enqueue{Number: 1})
	s.step(Enqueue{Number: 2})
	s.step(block(3, 'x', 'a'))
	s.step(Enqueue{Number: 4})
	s.step(block(5, 'y', 'b'))
	require.ErrorIs(t, s.try(Enqueue{Number: 6, Commitment: common.Hash{'a'}}), ErrCommitmentUsed)
	s.step(Enqueue{Number: 6})
	require.ErrorIs(t, s.try(block(7, 'a', 'c')), ErrWrongParent, "it is known that another bundle is the parent")
	s.step(GiveUp{Number: 1})
	require.ErrorIs(t, s.try(block(1, 'a', 'c')), ErrWrongParent, "it has failed")
}

// For any orders of the host, the commitments in the queue form one chain, in
// which none repeats, and a refused bundle changes nothing.
func TestCommitmentsFormAChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig(jamq.Tiny())
		cfg.MaxQueueDepth = 100
		q, err := New(cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
		if err != nil {
			t.Fatal(err)
		}
		chain := []byte{'g'} // the commitments that have not failed
		used := map[byte]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 && len(chain) > 1 {
				if _, err := q.Step(jamq.CommonEra(), GiveUp{Number: 1}); err != nil {
					t.Fatal(err)
				}
				chain = chain[:1]
				continue
			}
			parent := rapid.ByteRange('a', 'z').Draw(t, "parent")
			if rapid.Bool().Draw(t, "on the head") {
				parent = chain[len(chain)-1]
			}
			commitment := rapid.ByteRange('a', 'z').Draw(t, "commitment")
			fits := (parent == chain[len(chain)-1] || len(used) == 0) && !used[commitment] && commitment != parent
			ev := block(q.Next(), parent, commitment)
			if _, err := q.Step(jamq.CommonEra(), ev); (err == nil) != fits {
				t.Fatalf("block %c on %c, chain %s: %v", commitment, parent, chain, err)
			}
			if fits {
				if len(used) == 0 {
					chain[0], used[parent] = parent, true
				}
				used[commitment] = true
				chain = append(chain, commitment)
			}
			if q.Next() != uint64(len(chain)) || len(used) > 0 && q.Head() != (common.Hash{chain[len(chain)-1]}) {
				t.Fatalf("next is %d on %v, want %s", q.Next(), q.Head(), chain)
			}
			if err := q.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

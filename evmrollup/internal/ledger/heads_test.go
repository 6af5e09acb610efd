package ledger

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// testBlock makes a block on another; letter tells blocks of one number apart.
func testBlock(parent *Block, letter string) *Block {
	h := &types.Header{Number: new(big.Int), Extra: []byte(letter)}
	if parent != nil {
		h.Number.Add(parent.Number(), big.NewInt(1))
		h.ParentHash = parent.Hash()
	}
	return &Block{Block: types.NewBlockWithHeader(h)}
}

// line has blocks by number.
type line struct{ blocks []*Block }

// BlockByNumber returns a block, or nil.
func (l *line) BlockByNumber(number uint64) *Block {
	if number >= uint64(len(l.blocks)) {
		return nil
	}
	return l.blocks[number]
}

func (l *line) head() *Block           { return l.blocks[len(l.blocks)-1] }
func (l *line) append(b *Block)        { l.blocks = append(l.blocks, b) }
func (l *line) truncate(number uint64) { l.blocks = l.blocks[:number] }

func (c HeadChange) name() string {
	sign := "+"
	if c.Removed {
		sign = "-"
	}
	return fmt.Sprint(sign, c.Block.Number(), string(c.Block.Extra()))
}

// The changes of a chain that goes forward, back, forward again, and onto other blocks.
func TestHeadLog(t *testing.T) {
	genesis := testBlock(nil, "")
	blocks := &line{[]*Block{genesis}}
	l := NewHeadLog(genesis)
	cursor := l.Cursor()
	grow := func(letter string, count int) {
		for range count {
			blocks.append(testBlock(blocks.head(), letter))
		}
	}
	move := func(latest, finalized uint64, want string) {
		t.Helper()
		_, _, more, err := l.Changes(cursor, blocks.BlockByNumber)
		require.NoError(t, err)
		l.Move(blocks.BlockByNumber, latest, finalized)
		changes, next, _, err := l.Changes(cursor, blocks.BlockByNumber)
		require.NoError(t, err)
		var names []string
		for _, c := range changes {
			names = append(names, c.name())
		}
		require.Equal(t, want, strings.Join(names, " "))
		require.Equal(t, cursor+uint64(len(changes)), next)
		select {
		case <-more:
			require.NotEmpty(t, changes, "woken for nothing")
		default:
			require.Empty(t, changes, "not woken")
		}
		cursor = next
	}
	grow("a", 5)
	move(0, 0, "")
	move(3, 0, "+1a +2a +3a")
	move(3, 1, "")
	move(1, 1, "-2a -3a")
	move(4, 1, "+2a +3a +4a")
	blocks.truncate(3)
	move(2, 1, "-3a -4a")
	grow("b", 4)
	move(6, 2, "+3b +4b +5b +6b")
	blocks.truncate(5)
	grow("c", 1)
	move(5, 5, "-5b -6b +5c") // both at once
	move(5, 5, "")
	require.Equal(t, []*Block{blocks.head()}, l.line)

	_, _, _, err := l.Changes(cursor+1, blocks.BlockByNumber)
	require.ErrorIs(t, err, ErrMissed)
}

// Old changes are forgotten. A reader that is too late gets ErrMissed, and one that
// reads in portions gets each change once.
func TestHeadLogForgets(t *testing.T) {
	genesis := testBlock(nil, "")
	blocks := &line{[]*Block{genesis}}
	l := NewHeadLog(genesis)
	blocks.append(testBlock(genesis, "a"))
	var cursor uint64
	for i := range uint64(2 * keptChanges) {
		l.Move(blocks.BlockByNumber, 1-i%2, 0)
		if i%5000 == 0 || i == 2*keptChanges-1 {
			for {
				changes, next, more, err := l.Changes(cursor, blocks.BlockByNumber)
				require.NoError(t, err)
				for _, c := range changes {
					require.Equal(t, cursor%2 == 1, c.Removed)
					cursor++
				}
				require.Equal(t, next, cursor)
				select {
				case <-more:
					continue
				default:
				}
				break
			}
		}
	}
	require.EqualValues(t, 2*keptChanges, cursor)
	require.LessOrEqual(t, len(l.changes), keptChanges+keptChanges/8)
	_, _, _, err := l.Changes(0, blocks.BlockByNumber)
	require.ErrorIs(t, err, ErrMissed)
}

// Property: a reader that follows the changes ends at latest, whatever the chain does.
func TestHeadLogFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		genesis := testBlock(nil, "")
		blocks := &line{[]*Block{genesis}}
		l := NewHeadLog(genesis)
		var cursor, finalized uint64
		read := []*Block{genesis}
		for step := range 60 {
			head := blocks.head().NumberU64()
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				blocks.append(testBlock(blocks.head(), fmt.Sprint(step)))
			case 2:
				if head > finalized {
					blocks.truncate(rapid.Uint64Range(finalized+1, head).Draw(t, "from"))
				}
			}
			latest := rapid.Uint64Range(finalized, blocks.head().NumberU64()).Draw(t, "latest")
			finalized = rapid.Uint64Range(finalized, latest).Draw(t, "finalized")
			l.Move(blocks.BlockByNumber, latest, finalized)
			changes, next, _, err := l.Changes(cursor, blocks.BlockByNumber)
			if err != nil {
				t.Fatal(err)
			}
			cursor = next
			gone := 0 // of the removed, which come with the oldest first
			for _, c := range changes {
				if c.Removed {
					gone++
				}
			}
			for i, c := range changes[:gone] {
				if !c.Removed || c.Block != read[len(read)-gone+i] {
					t.Fatalf("removed %s, and stood on %v", c.name(), read[len(read)-1].Number())
				}
			}
			read = read[:len(read)-gone]
			for _, c := range changes[gone:] {
				if c.Block.ParentHash() != read[len(read)-1].Hash() {
					t.Fatalf("%s does not continue", c.name())
				}
				read = append(read, c.Block)
			}
			if top := read[len(read)-1]; top != blocks.BlockByNumber(latest) {
				t.Fatalf("stands on %v, and latest is %d", top.Number(), latest)
			}
		}
	})
}

// Changes whose blocks cannot be read are an error and not a panic, which would end the
// process, because goroutines of subscriptions read them.
func TestHeadChangesOfDamagedLedger(t *testing.T) {
	made := []*Block{testBlock(nil, "")}
	for range 9 {
		made = append(made, testBlock(made[len(made)-1], ""))
	}
	l := NewHeadLog(made[0])
	cursor := l.Cursor()
	l.Move(func(number uint64) *Block { return made[number] }, 9, 9)
	_, _, _, err := l.Changes(cursor, func(number uint64) *Block {
		panic(fmt.Errorf("%w: block %d", ErrDamaged, number))
	})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "block 1")
	require.PanicsWithValue(t, "another reason", func() {
		_, _, _, _ = l.Changes(cursor, func(uint64) *Block { panic("another reason") })
	})
}

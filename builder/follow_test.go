package builder_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
)

var errDisk = errors.New("no disk")

// replica is one of several builders on a shared log.
type replica struct {
	*builder.Builder[words.Body]
	rollup *words.Saving
	log    *journal.Member
	cancel context.CancelFunc
	ended  chan error
}

// join opens a builder on a shared log and runs it.
func (m *machine) join(shared *journal.Shared) *replica {
	m.t.Helper()
	return m.joinWith(shared, new(words.Saving), m.network)
}

// joinWith is join with a rollup and a network of the caller's.
func (m *machine) joinWith(shared *journal.Shared, rollup *words.Saving, network builder.Network) *replica {
	m.t.Helper()
	r := &replica{rollup: rollup, log: shared.Join(), ended: make(chan error, 1)}
	var err error
	r.Builder, err = builder.Open(m.t.Context(), m.cfg, r.log, r.rollup, network)
	require.NoError(m.t, err)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(m.t.Context())
	go func() { r.ended <- r.Run(ctx) }()
	return r
}

// stop ends a builder, and gives the lead away if it leads.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	require.ErrorIs(t, <-r.ended, context.Canceled)
	require.NoError(t, r.log.Close())
}

// submitTo submits a word as a user does: to another builder if one does not take it.
func submitTo(ctx context.Context, t *testing.T, replicas []*replica, word string) {
	t.Helper()
	for i := 0; ctx.Err() == nil; i++ {
		if replicas[i%len(replicas)].Submit(ctx, []byte(word)) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("no builder takes the word")
}

// TestFollow: a builder follows another one on a shared log, through checkpoints, and leads when
// the other one has ended. It then goes on with the operations that the other one has accepted.
func TestFollow(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
		m.cfg.CheckpointEvery = 8
		first := m.join(shared)
		second := m.join(shared)
		require.False(t, first.Health().Follows)
		require.True(t, second.Health().Follows)
		for i := range uint64(4) {
			submit(ctx, t, first.Builder, i+1, fmt.Sprint(i))
		}
		require.NoError(t, second.Await(ctx, final(4)))
		require.Equal(t, first.rollup.State(), second.rollup.State())
		require.Equal(t, []uint64{1, 2, 3, 4}, second.rollup.Finals())

		err := second.Submit(ctx, []byte("to a follower"))
		require.ErrorIs(t, err, builder.ErrFollows)
		require.ErrorIs(t, err, builder.ErrStopped)
		_, err = second.Stats(ctx)
		require.ErrorIs(t, err, builder.ErrFollows)

		require.NoError(t, first.Submit(ctx, []byte("accepted")))
		first.stop(t)
		require.NoError(t, second.Await(ctx, final(5)))
		require.False(t, second.Health().Follows)
		submit(ctx, t, second.Builder, 6, "later")
		require.Equal(t, []string{"0", "1", "2", "3", "accepted", "later"}, second.rollup.State())
		second.stop(t)

		third := m.join(shared)
		require.Equal(t, second.rollup.State(), third.rollup.State())
		third.stop(t)
	})
}

// TestFollowMakesCheckpoints: a follower makes its own checkpoint in the state that the leader's
// checkpoint has, so that it can restore that state at its next start from its own disk.
func TestFollowMakesCheckpoints(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
		m.cfg.CheckpointEvery = 8
		var made [2][]string // of each builder
		var replicas [2]*replica
		for i := range replicas {
			rollup := new(words.Saving)
			rollup.BeforeCheckpoint = func() error {
				made[i] = append(made[i], fmt.Sprint(rollup.State(), rollup.Finals()))
				return nil
			}
			replicas[i] = m.joinWith(shared, rollup, m.network)
		}
		first, second := replicas[0], replicas[1]
		for i := range uint64(9) {
			submit(ctx, t, first.Builder, i+1, fmt.Sprint(i))
		}
		require.NoError(t, second.Await(ctx, final(9)))
		first.stop(t)
		second.cancel()
		<-second.ended
		require.Greater(t, len(made[0]), 2)
		require.Equal(t, made[0], made[1])
	})
}

// TestFencedLeader: a builder that has lost the lead without noticing writes nothing more, tells no
// user that an operation was accepted, and ends. The operations that it has accepted before stay.
func TestFencedLeader(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
		first := m.join(shared)
		require.NoError(t, first.Submit(ctx, []byte("before")))
		second := m.join(shared)
		shared.Depose()
		require.NoError(t, second.Await(ctx, final(1)))
		err := first.Submit(ctx, []byte("after"))
		require.ErrorIs(t, err, builder.ErrLog)
		require.ErrorIs(t, err, journal.ErrFenced)
		require.ErrorIs(t, <-first.ended, journal.ErrFenced)
		submit(ctx, t, second.Builder, 2, "after")
		require.Equal(t, []string{"before", "after"}, second.rollup.State())
		second.stop(t)
	})
}

// TestFollowFailure: a follower whose rollup fails ends with its error, and the leader goes on.
func TestFollowFailure(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
		first := m.join(shared)
		second := m.joinWith(shared, &words.Saving{BeforeFinal: func() error { return errDisk }}, m.network)
		submit(ctx, t, first.Builder, 1, "one")
		require.ErrorIs(t, <-second.ended, errDisk)
		submit(ctx, t, first.Builder, 2, "two")
		first.stop(t)
	})
}

// TestNewChainNeedsOwnLog: blocks cannot be undone behind the back of other processes.
func TestNewChainNeedsOwnLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.NewChain = true
		_, err := builder.Open(t.Context(), m.cfg, new(journal.Shared).Join(), new(words.Saving), m.network)
		require.ErrorIs(t, err, builder.ErrInvalidConfig)
	})
}

// TestK6DivergedReplicaDoesNotLead: a replica whose rollup has another result for a block than the
// leader's ends, and does not lead when the leader has ended.
func TestK6DivergedReplicaDoesNotLead(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared := newMachine(t), new(journal.Shared)
		first := m.join(shared)
		other := new(words.Saving)
		other.Hash = func(state []string) common.Hash {
			if len(state) == 0 {
				return new(words.Rollup).Root()
			}
			return common.Hash{9}
		}
		second := m.joinWith(shared, other, m.network)
		submit(t.Context(), t, first.Builder, 1, "one")
		require.ErrorIs(t, <-second.ended, builder.ErrDiverged)
		first.stop(t)
		time.Sleep(time.Hour)
		require.True(t, second.Health().Follows)
		require.ErrorIs(t, second.Submit(t.Context(), []byte("two")), builder.ErrStopped)
	})
}

// TestK5TakeOvers: of three builders one is killed, stopped or deposed again and again while users
// submit words. Each accepted word is executed once, and in the end all builders agree.
func TestK5TakeOvers(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) { takeOvers(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func takeOvers(t *testing.T, random *rand.Rand) {
	m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
	m.cfg.CheckpointEvery = 1 + random.IntN(40)
	replicas := []*replica{m.join(shared), m.join(shared), m.join(shared)}
	var accepted []string
	for round := range 12 {
		for i := range 1 + random.IntN(4) {
			word := fmt.Sprintf("%d/%d", round, i)
			submitTo(ctx, t, replicas, word)
			accepted = append(accepted, word)
			time.Sleep(time.Duration(random.IntN(8000)) * time.Millisecond)
		}
		i := random.IntN(len(replicas))
		switch old := replicas[i]; random.IntN(3) {
		case 0: // the others notice later that it has ended
			old.cancel()
			old.ended <- <-old.ended
			time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			require.NoError(t, old.log.Close())
		case 1:
			shared.Depose()
		default:
			require.NoError(t, old.log.Close()) // as if it lost its network
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Second)
		for i, r := range replicas {
			if isEnded(r) {
				replicas[i] = m.join(shared)
			}
		}
	}
	submitTo(ctx, t, replicas, "last")
	accepted = append(accepted, "last")
	slices.Sort(accepted)
	for _, r := range replicas {
		if isEnded(r) {
			continue
		}
		require.NoError(t, r.Await(ctx, func(h canonical.Heads) bool {
			return h.Finalized == h.Pending && slices.Contains(r.rollup.State(), "last")
		}))
		have := r.rollup.State()
		slices.Sort(have)
		require.Equal(t, accepted, have)
	}
	for _, r := range replicas {
		r.cancel()
	}
}

func isEnded(r *replica) bool {
	select {
	case err := <-r.ended:
		r.ended <- err
		return true
	default:
		return false
	}
}

// replacing is a shared log that another process replaces while a builder is opened.
type replacing struct {
	*journal.Member
	replays int
	between func() // before the second call of Replay
}

func (r *replacing) Replay(f func(record []byte) error) error {
	if r.replays++; r.replays == 2 {
		r.between()
	}
	return r.Member.Replay(f)
}

// TestOpenWhileReplaced: the leader replaces the log by a checkpoint while another builder opens
// it.
func TestOpenWhileReplaced(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, ctx := newMachine(t), new(journal.Shared), t.Context()
		m.cfg.CheckpointEvery = 4
		leader := m.join(shared)
		submit(ctx, t, leader.Builder, 1, "one")
		log := &replacing{Member: shared.Join(), between: func() {
			submit(ctx, t, leader.Builder, 2, "two")
			submit(ctx, t, leader.Builder, 3, "three")
		}}
		rollup := new(words.Saving)
		_, err := builder.Open(ctx, m.cfg, log, rollup, m.network)
		require.NoError(t, err)
		require.Equal(t, leader.rollup.State(), rollup.State())
		leader.stop(t)
	})
}

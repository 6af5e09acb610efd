package bundlequeue

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// busy returns a queue in the midst of its work, and the records of all its steps.
func busy(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, nil)
	for n := uint64(1); n <= 5; n++ {
		s.enqueue(n)
	}
	s.step(Reserve{Number: 6})
	sent := s.run()
	s.block(report(sent[0], 0))
	s.block(accumulate(sent[0], 0))
	s.block(report(sent[1], 1))
	s.step(FinalizedBlock{Hash: jamq.HeaderHash{'a', 10}})
	s.answer()
	fork := s.parent
	s.block(nil)
	s.blockOn(fork, s.slot+1, 'b', nil)
	return s
}

func TestSnapshotRestores(t *testing.T) {
	s := busy(t)
	b := s.q.AppendSnapshot(nil)
	back, err := Restore(s.q.cfg, b)
	require.NoError(t, err)
	require.NoError(t, back.check())
	require.Equal(t, s.q.Stats(), back.Stats())
	require.True(t, bytes.Equal(b, back.AppendSnapshot(nil)), "the snapshot of the restored queue is the same")

	// And both go on alike.
	other := *s
	other.q = back
	for _, scene := range []*scene{s, &other} {
		scene.log = nil
		for range 20 {
			scene.run()
			scene.block(nil)
		}
	}
	require.Equal(t, s.log, other.log)
	require.True(t, bytes.Equal(s.q.AppendSnapshot(nil), back.AppendSnapshot(nil)))
}

// Neither the queue nor its snapshot holds the bytes of a final bundle. Open
// does not return an unanswered send of it.
func TestFinalBundlesAreDropped(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	sent := s.run()
	s.step(Retry{Number: 1}) // one that is never answered
	s.block(report(sent[0], 0))
	s.block(accumulate(sent[0], 0))
	require.Contains(t, string(s.q.AppendSnapshot(nil)), "bundle 1")
	s.step(FinalizedBlock{Hash: s.parent})
	info, _ := s.q.Info(1)
	require.Equal(t, Finalized, info.State)
	require.Empty(t, s.q.items[0].bundle)
	require.Empty(t, s.q.items[0].versions[0].bundle)
	b := s.q.AppendSnapshot(nil)
	require.NotContains(t, string(b), "bundle 1")
	back, err := Restore(s.q.cfg, b)
	require.NoError(t, err)
	for _, q := range []*Queue{s.q, back} {
		require.Empty(t, q.Open())
		require.NoError(t, q.check())
	}
}

func TestReplayIsByteForByte(t *testing.T) {
	s := busy(t)
	again, err := New(s.q.cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	require.NoError(t, err)
	require.NoError(t, Replay(again, s.records, nil))
	require.True(t, bytes.Equal(s.q.AppendSnapshot(nil), again.AppendSnapshot(nil)))
	require.Equal(t, s.q.Open(), again.Open())
	require.Len(t, again.Open(), len(s.builds)+len(s.sends))

	require.ErrorIs(t, Replay(again, [][]byte{{9}}, nil), ErrCorrupt)
	enqueue, err := AppendRecord(nil, s.now, Enqueue{Number: 1})
	require.NoError(t, err)
	require.ErrorIs(t, Replay(again, [][]byte{enqueue}, nil), ErrCorrupt)
	_, err = AppendRecord(nil, s.now, nil)
	require.ErrorIs(t, err, ErrUnknownEvent)
}

func TestSnapshotRefusals(t *testing.T) {
	s := busy(t)
	b := s.q.AppendSnapshot(nil)
	for i := range b {
		broken := bytes.Clone(b)
		broken[i] ^= 1
		_, err := Restore(s.q.cfg, broken)
		require.ErrorIs(t, err, ErrCorrupt, "byte %d", i)
	}
	_, err := Restore(s.q.cfg, b[:len(b)-1])
	require.ErrorIs(t, err, ErrCorrupt)
	other := s.q.cfg
	other.Spec.RecentHistory++
	_, err = Restore(other, b)
	require.ErrorIs(t, err, ErrInvalidConfig)
}

// A restored queue takes depth and cores from its configuration, unless an event set the cores.
func TestRestoreUnderAnotherConfiguration(t *testing.T) {
	s := busy(t)
	cfg := s.q.cfg
	cfg.MaxQueueDepth, cfg.MaxVersionRetries, cfg.RetentionWindow = 99, 0, 0
	for _, cores := range [][]jamq.CoreIndex{{0}, {1}, {1, 0}, {0, 1}} {
		cfg.Cores = cores
		q, err := Restore(cfg, s.q.AppendSnapshot(nil))
		require.NoError(t, err)
		require.NoError(t, q.check())
		require.Equal(t, 99, q.Stats().Depth)
		require.Equal(t, cores, q.cores.indices())
	}
	s.step(Cores{Cores: []jamq.CoreIndex{1}})
	cfg.Cores = []jamq.CoreIndex{0, 1}
	q, err := Restore(cfg, s.q.AppendSnapshot(nil))
	require.NoError(t, err)
	require.Equal(t, []jamq.CoreIndex{1}, q.cores.indices())
	// An event with the configured cores ends the change.
	_, err = q.Step(s.now, Cores{Cores: []jamq.CoreIndex{0, 1}})
	require.NoError(t, err)
	cfg.MaxQueueDepth, cfg.Cores = 5, []jamq.CoreIndex{0}
	q, err = Restore(cfg, q.AppendSnapshot(nil))
	require.NoError(t, err)
	require.Equal(t, 5, q.Stats().Depth)
	require.Equal(t, []jamq.CoreIndex{0}, q.cores.indices())
}

// Restore does not panic on arbitrary bytes. A queue that it returns keeps its
// invariants and can be used.
func FuzzRestore(f *testing.F) {
	cfg := DefaultConfig(jamq.Tiny())
	q, _ := New(cfg, jamq.Block{Hash: jamq.HeaderHash{'g'}})
	f.Add(q.AppendSnapshot(nil))
	f.Add(busy(&testing.T{}).q.AppendSnapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // get past the checksum
			sum := crc32.Checksum(b[:len(b)-4], castagnoli)
			b = binary.LittleEndian.AppendUint32(bytes.Clone(b[:len(b)-4]), sum)
		}
		q, err := Restore(cfg, b)
		if err != nil {
			return
		}
		now := jamq.CommonEra()
		for _, ev := range []Event{Tick{}, Enqueue{Number: q.Next()}, Tick{}} {
			_, _ = q.Step(now, ev)
		}
		q.AppendSnapshot(nil)
	})
}

// DecodeRecord does not panic on arbitrary bytes. A record that it decodes has
// the same encoding again.
func FuzzRecord(f *testing.F) {
	s := busy(&testing.T{})
	for _, r := range s.records {
		f.Add(r)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		now, ev, err := DecodeRecord(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		first, err := AppendRecord(nil, now, ev)
		require.NoError(t, err)
		now2, ev2, err := DecodeRecord(first)
		require.NoError(t, err)
		second, err := AppendRecord(nil, now2, ev2)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}

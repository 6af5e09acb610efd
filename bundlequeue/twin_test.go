package bundlequeue_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// twin is a second queue that takes the events of another one as a journal
// returns them, and the refused ones too. Now and then it is restored from its
// own snapshot, also while it is a restored queue. Both queues always respond
// equally and have equal snapshots.
type twin struct {
	random *rand.Rand
	cfg    bundlequeue.Config
	queue  *bundlequeue.Queue
}

func newTwin(seed uint64, cfg bundlequeue.Config, root jamq.Block) (*twin, error) {
	queue, err := bundlequeue.New(cfg, root)
	return &twin{rand.New(rand.NewPCG(seed, 4)), cfg, queue}, err
}

func (w *twin) follow(now time.Time, ev bundlequeue.Event, other *bundlequeue.Queue, effects []bundlequeue.Effect, refused error) error {
	record, err := bundlequeue.AppendRecord(nil, now, ev)
	if err != nil {
		return err
	}
	if now, ev, err = bundlequeue.DecodeRecord(record); err != nil {
		return err
	}
	mine, err := w.queue.Step(now, ev)
	if fmt.Sprint(err) != fmt.Sprint(refused) {
		return fmt.Errorf("%T: a replayed queue returns %v, want %v", ev, err, refused)
	}
	if len(mine)+len(effects) > 0 && !reflect.DeepEqual(mine, effects) {
		return fmt.Errorf("%T: a replayed queue returns %v, want %v", ev, mine, effects)
	}
	wake, waits := w.queue.NextWake(now)
	if at, ok := other.NextWake(now); at != wake || ok != waits {
		return fmt.Errorf("%T: a replayed queue wakes at %v, %v, want %v, %v", ev, wake, waits, at, ok)
	}
	if w.random.IntN(50) > 0 {
		return nil
	}
	want := other.AppendSnapshot(nil)
	if !bytes.Equal(want, w.queue.AppendSnapshot(nil)) {
		return errors.New("the snapshot of a replayed queue differs")
	}
	if w.random.IntN(4) == 0 {
		if err := w.reconfigure(want); err != nil {
			return err
		}
	}
	w.queue, err = bundlequeue.Restore(w.cfg, want)
	return err
}

// restart restores the queue from its own snapshot.
func (w *twin) restart(cfg bundlequeue.Config) (err error) {
	w.cfg = cfg
	w.queue, err = bundlequeue.Restore(cfg, w.queue.AppendSnapshot(nil))
	return err
}

// reconfigure restores a snapshot under one configuration after another.
func (w *twin) reconfigure(snapshot []byte) error {
	for range 2 {
		cfg := w.cfg
		cfg.MaxQueueDepth, cfg.RetentionWindow = 1+w.random.IntN(20), w.random.IntN(3)
		cfg.MaxSubmitRetries, cfg.MaxVersionRetries = w.random.IntN(5), w.random.IntN(6)
		cfg.Cores = [][]jamq.CoreIndex{{0}, {1}, {0, 1}, {1, 0}}[w.random.IntN(4)]
		queue, err := bundlequeue.Restore(cfg, snapshot)
		if err != nil {
			return fmt.Errorf("with retention of %d bundles, %d retries and cores %v: %w", cfg.RetentionWindow, cfg.MaxVersionRetries, cfg.Cores, err)
		}
		snapshot = queue.AppendSnapshot(nil)
	}
	return nil
}

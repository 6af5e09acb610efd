package buildertest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/journal"
)

var (
	// errDied is returned by all calls after the simulated process has died.
	errDied = errors.New("the process has died")
	// errHost is returned by calls of the host that fail at random.
	errHost = errors.New("a call of the host fails")
	// errDisk is returned by writes to the log that fail at random.
	errDisk = errors.New("the disk fails")
)

// life is one life of the builder's process, from its start until it ends or is killed.
// It can be killed before and after each write to the log, each call of the rollup and
// each send. After its death, calls have no effect.
type life[B any] struct {
	*world[B]
	stop context.CancelFunc

	luck   uint64 // of this life
	rhythm int    // blocks are made in the first of this many minutes

	mu      sync.Mutex
	times   map[string]uint64
	moments int
	diesAt  int // 0: never
	dead    bool
	opened  bool
	// logFailed is true if a write has failed, so that the builder stops.
	logFailed bool
}

func newLife[B any](w *world[B], diesAt int) *life[B] {
	rhythms := []int{1, 1, 1, 1, 2, 4}
	return &life[B]{
		world: w, diesAt: diesAt, luck: w.random.Uint64(), rhythm: rhythms[w.random.IntN(len(rhythms))], times: make(map[string]uint64),
	}
}

// run opens the builder and lets users submit operations, until the outcome is certain.
func (l *life[B]) run(ctx context.Context) error {
	ctx, l.stop = context.WithCancel(ctx)
	defer l.stop()
	if l.rules.Log != nil {
		log, err := l.rules.Log(l.logs)
		if err != nil {
			return fmt.Errorf("open the log: %w", err)
		}
		l.log = log
		defer func() { _ = log.Close() }()
	}
	rollup := &checked[B]{life: l, inner: l.rules.New()}
	defer func() { _ = closeRollup(rollup.inner) }()
	b, err := builder.Open(ctx, l.cfg, l, l.wrap(rollup), &mortal[B]{l.network, l})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.opened = true
	l.mu.Unlock()
	l.diary.note("the builder is open, at block %d", b.Heads().Pending.Number)
	if l.cfg.NewChain {
		l.leaveChain(b.Heads().Finalized.Number)
	}
	ran := make(chan error, 1)
	go func() { ran <- b.Run(ctx) }()
	const kinds = 5
	var users sync.WaitGroup
	for range 1 << l.roll("users", kinds) { // 1 to 16, whose operations overlap
		users.Go(func() { l.submitAll(ctx, b) })
	}
	users.Go(func() { l.submitAgain(ctx, b) })
	err = l.watch(ctx, rollup, ran)
	l.stop()
	users.Wait()
	return err
}

// watch waits until the builder stops or the outcome is certain.
func (l *life[B]) watch(ctx context.Context, rollup *checked[B], ran chan error) error {
	for {
		select {
		case err := <-ran:
			return err
		case <-l.settled:
			l.stop()
			<-ran
			return nil
		case <-time.After(time.Minute):
			l.look(rollup.inner)
		}
	}
}

// submitAll plays a user who submits the remaining operations at random times.
func (l *life[B]) submitAll(ctx context.Context, b *builder.Builder[B]) {
	for ctx.Err() == nil {
		if wait := l.roll("submit", 80) - 40; wait > 0 { // half of them at once
			time.Sleep(time.Duration(wait) * time.Second)
		}
		if ctx.Err() != nil {
			return
		}
		op, first, some := l.take()
		if !some {
			return
		}
		l.submit(ctx, b, op, first)
	}
}

// submit submits an operation until there is an answer, or the process is gone.
func (l *life[B]) submit(ctx context.Context, b *builder.Builder[B], op []byte, first bool) {
	const most = 3
	var err error
	for refusals := 0; refusals < most; {
		err = b.Submit(ctx, op)
		l.diary.note("submit %s: %v", short(op), err)
		if l.isDead() || ctx.Err() != nil || errors.Is(err, builder.ErrLog) || errors.Is(err, builder.ErrStopped) {
			l.unanswered(op)
			return
		}
		if err == nil {
			break
		}
		if errors.Is(err, errHost) || errors.Is(err, builder.ErrPanic) {
			continue // users try again at once
		}
		if refusals++; refusals < most {
			// The user tries again later, because another operation may have to be
			// executed first.
			time.Sleep(time.Minute)
		}
	}
	l.answered(op, err, first)
	if err != nil {
		return
	}
	switch l.roll("repeat", 6) { // the user has not received the answer
	case 0:
		l.diary.note("submit %s a second time: %v", short(op), b.Submit(ctx, op))
	case 1:
		l.repeatLater(op)
	}
}

// submitAgain submits accepted operations again, like users who got no answer.
func (l *life[B]) submitAgain(ctx context.Context, b *builder.Builder[B]) {
	for ctx.Err() == nil {
		select {
		// Wait for some minutes before submitting the operation again. By then it has usually
		// been executed in a block that is final, and the rollup must ignore it.
		case <-time.After(time.Duration(3+l.roll("late repeat", 5)) * time.Minute):
		case <-ctx.Done():
			return
		}
		if op, some := l.takeLate(); some {
			l.diary.note("submit %s a second time, late: %v", short(op), b.Submit(ctx, op))
		}
	}
}

// roll returns a random number below n for the event with the given name.
func (l *life[B]) roll(name string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[name]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	// The same seed must make the same choices again, even if goroutines run in a different
	// order. The choice therefore depends only on the seed, on the name of the decision, and
	// on how often the decision was made before.
	return rand.New(rand.NewPCG(l.luck^h.Sum64(), l.times[name])).IntN(n)
}

// lives is called at each moment when the process could be killed. It counts the moment,
// and returns false if the process is dead or is killed there.
func (l *life[B]) lives() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moments++; l.moments == l.diesAt {
		l.dead = true
		l.stop()
	}
	return !l.dead
}

// passed returns how often the process could have been killed so far.
func (l *life[B]) passed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.moments
}

func (l *life[B]) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// gathers reports whether the rollup must make no block at this time of the virtual clock.
// Many operations then wait, so that the next block contains several.
func (l *life[B]) gathers() bool { return time.Now().Minute()%l.rhythm > 0 }

// running reports whether the builder has recovered.
func (l *life[B]) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// moment calls f. The process may die before and after the call.
func (l *life[B]) moment(f func() error) error {
	if !l.lives() {
		return errDied
	}
	err := f()
	if !l.lives() {
		return errDied
	}
	return err
}

// Append implements builder.Log. The process can be killed before or after the write.
// In the second case, the log keeps the records although Append has not returned.
func (l *life[B]) Append(records ...[]byte) error {
	return l.moment(func() error {
		time.Sleep(50 * time.Millisecond) // long enough for an act that does not wait for it
		if l.isDead() {
			return errDied
		}
		return l.write(func() error { return l.log.Append(records...) })
	})
}

// Replace implements builder.Log. At random it refuses a checkpoint, which a
// builder must tolerate.
func (l *life[B]) Replace(records ...[]byte) error {
	return l.moment(func() error {
		if l.running() && l.roll("replace", 8) < l.refusals {
			l.diary.note("a checkpoint is refused")
			return journal.ErrTooLarge
		}
		l.diary.note("a checkpoint of %d records", len(records))
		return l.write(func() error { return l.log.Replace(records...) })
	})
}

// write writes to the log, or fails at random.
func (l *life[B]) write(records func() error) error {
	if !l.running() || l.roll("write", 300) > 0 || !l.mayBreak() {
		return records()
	}
	l.diary.note("the log fails")
	// This simulates a disk that fails during a write. Afterwards, the log has the records or
	// has not, at random.
	if l.roll("write", 2) == 0 {
		_ = records()
	}
	return errDisk
}

// mayBreak reports whether a write may fail, which happens at most once per process.
func (l *life[B]) mayBreak() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logFailed || l.failures == 0 {
		return false
	}
	l.failures--
	l.logFailed = true
	return true
}

func (l *life[B]) logHasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.logFailed
}

// Replay implements builder.Log.
func (l *life[B]) Replay(f func([]byte) error) error { return l.log.Replay(f) }

// mortal is the network that the builder uses in one life. Its calls fail at
// random, and they have no effect after the process has died.
type mortal[B any] struct {
	*simnet.Network
	life *life[B]
}

// Pack implements builder.Network. At random it fails.
func (n *mortal[B]) Pack(ctx context.Context, at builder.Anchor, payload []byte) (pkg builder.Package, err error) {
	err = n.life.chance("pack", func() error { pkg, err = n.Network.Pack(ctx, at, payload); return err })
	return pkg, err
}

// Send implements builder.Network. At random it fails.
func (n *mortal[B]) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	return n.life.moment(func() error {
		return n.life.chance("send", func() error { return n.Network.Send(ctx, pkg, core, attempt) })
	})
}

// chance makes a call or, at random, fails or panics instead.
func (l *life[B]) chance(name string, call func() error) error {
	switch l.roll(name, 20) {
	case 0:
		l.diary.note("%s fails", name)
		return errHost
	case 1:
		l.diary.note("%s panics", name)
		panic("by chance")
	}
	return call()
}

package buildertest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
)

func rules(rollup func() builder.Rollup[words.Body]) buildertest.Case[words.Body] {
	c := buildertest.Case[words.Body]{
		New:       rollup,
		Operation: func(i int) []byte { return fmt.Appendf(nil, "word %d", i) },
		Executed:  words.Executed,
	}
	c.Dropped = func(r builder.Rollup[words.Body]) (all [][]byte) {
		for i := 0; i < 30; i++ {
			if _, drops := r.(*listed); drops && thirdWord(c.Operation(i)) {
				all = append(all, c.Operation(i))
			}
		}
		return all
	}
	return c
}

// Rollups with and without checkpoints, and one whose Admit refuses every third word.
var rollups = map[string]func() builder.Rollup[words.Body]{
	"log":         func() builder.Rollup[words.Body] { return new(words.Rollup) },
	"checkpoints": func() builder.Rollup[words.Body] { return new(words.Saving) },
	"refusals":    func() builder.Rollup[words.Body] { return new(picky) },
	"list":        func() builder.Rollup[words.Body] { return new(listed) },
}

// picky refuses every third word.
type picky struct{ words.Saving }

func (p *picky) Admit(ctx context.Context, op []byte) error {
	if thirdWord(op) {
		return words.ErrWord
	}
	return p.Saving.Admit(ctx, op)
}

// listed is a rollup whose words wait in a builder.List. It drops every third word.
type listed struct {
	builder.List
	mu    sync.Mutex
	state words.Body
}

// Admit implements builder.Operations.
func (l *listed) Admit(ctx context.Context, op []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.state, string(op)) {
		return nil
	}
	return l.List.Admit(ctx, op)
}

func (l *listed) Propose(context.Context, uint64) (body words.Body, root common.Hash, err error) {
	const most = 3
	for _, op := range l.Waiting() {
		switch {
		case thirdWord(op):
			l.Drop(op)
		case len(body) < most:
			body = append(body, string(op))
		}
	}
	if len(body) == 0 {
		return nil, root, builder.ErrIdle
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return body, hash(slices.Concat(l.state, body)), nil
}

func (l *listed) Apply(_ context.Context, b builder.Block[words.Body]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = append(l.state, b.Body...)
	l.Executed(operations(b.Body)...)
	return nil
}

func (l *listed) Undo(_ context.Context, b builder.Block[words.Body]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = l.state[:len(l.state)-len(b.Body)]
	l.Returned(operations(b.Body)...)
	return nil
}

func operations(body words.Body) (ops [][]byte) {
	for _, word := range body {
		ops = append(ops, []byte(word))
	}
	return ops
}

func (l *listed) Root() common.Hash {
	l.mu.Lock()
	defer l.mu.Unlock()
	return hash(l.state)
}

func (l *listed) Payload(_ context.Context, b builder.Block[words.Body]) ([]byte, error) {
	return words.Payload(b)
}

func (l *listed) Checkpoint(context.Context) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state, err := json.Marshal(l.state)
	return append([][]byte{state}, l.Records()...), err
}

func (l *listed) Restore(ctx context.Context, records [][]byte) error {
	for _, change := range records[1:] {
		if err := l.ReplayChange(ctx, change); err != nil {
			return err
		}
	}
	return json.Unmarshal(records[0], &l.state)
}

func thirdWord(op []byte) bool { return op[len(op)-1]%3 == 0 }

// TestRun: a rollup without faults passes.
func TestRun(t *testing.T) {
	for name, rollup := range rollups {
		t.Run(name, func(t *testing.T) { buildertest.Run(t, rules(rollup)) })
	}
	t.Run("files", func(t *testing.T) { buildertest.Run(t, filed(0)) })
	t.Run("conditions", func(t *testing.T) {
		buildertest.Run(t, rules(func() builder.Rollup[words.Body] {
			return &conditional{Rollup: words.Rollup{Hash: hash}}
		}))
	})
}

// TestAdmitRefusesRepetitions: Admit may refuse an operation that waits or was executed, although
// users whose answer was lost submit it again.
func TestAdmitRefusesRepetitions(t *testing.T) {
	buildertest.Run(t, rules(func() builder.Rollup[words.Body] { return new(unique) }))
}

type unique struct{ words.Saving }

// Admit implements builder.Operations.
func (u *unique) Admit(ctx context.Context, op []byte) error {
	if slices.Contains(append(u.State(), u.Waiting()...), string(op)) {
		return words.ErrWord
	}
	return u.Saving.Admit(ctx, op)
}

func hash(state []string) common.Hash { return sha256.Sum256(fmt.Appendf(nil, "%q", state)) }

// conditional is a rollup whose words of even numbers run only after the next word. If such a word
// waits already when its condition comes, a block that is undone is followed by a larger one.
type conditional struct{ words.Rollup }

// Propose implements builder.Rollup.
func (c *conditional) Propose(context.Context, uint64) (words.Body, common.Hash, error) {
	const most = 3
	state := c.State()
	first := len(state)
	for _, word := range c.Waiting() {
		var number int
		if _, err := fmt.Sscanf(word, "word %d", &number); err != nil {
			return nil, common.Hash{}, err
		}
		if number%2 == 1 || slices.Contains(state, fmt.Sprint("word ", number+1)) {
			state = append(state, word)
		}
		if len(state) == first+most {
			break
		}
	}
	if len(state) == first {
		return nil, common.Hash{}, builder.ErrIdle
	}
	return slices.Clone(state[first:]), hash(state), nil
}

// TestLog: the kit runs on the log of a user, which it opens for each life. It finds one that
// loses records when it is opened.
func TestLog(t *testing.T) {
	c := rules(rollups["checkpoints"])
	opened := 0
	c.Log = func(dir string) (journal.Journal, error) {
		opened++
		return journal.Open(filepath.Join(dir, "log"))
	}
	seed, problem := buildertest.Find(t, c, 3)
	require.NoError(t, problem, "seed %d", seed)
	require.Greater(t, opened, 3, "some seeds have several lives")

	logs := make(map[string]*journal.Memory) // by directory
	c.Log = func(dir string) (journal.Journal, error) {
		if logs[dir] == nil {
			logs[dir] = new(journal.Memory)
		}
		logs[dir].Reopen()
		return forgetful{logs[dir]}, nil
	}
	_, problem = buildertest.Find(t, c, 50)
	require.Error(t, problem)
}

// forgetful is a log that does not show its last records.
type forgetful struct{ journal.Journal }

func (f forgetful) Replay(each func([]byte) error) error {
	n := 0
	if err := f.Journal.Replay(func([]byte) error { n++; return nil }); err != nil {
		return err
	}
	return f.Journal.Replay(func(record []byte) error {
		if n--; n < 8 && record[0] != 'C' && record[0] != 'S' {
			return nil
		}
		return each(record)
	})
}

// filed returns the rules of a rollup with files, which keeps the given number of them.
func filed(keeps int) buildertest.Case[words.Body] {
	c := rules(nil)
	c.Open = func(dir string) builder.Rollup[words.Body] { return &filing{dir: dir, keeps: keeps} }
	return c
}

// TestK1DiesAtAnyMoment: the process dies before and after any write of the log, any call
// of the rollup and any send, also while blocks fail. Nothing is lost, and nothing is
// executed twice.
func TestK1DiesAtAnyMoment(t *testing.T) {
	for name, rollup := range rollups {
		t.Run(name, func(t *testing.T) {
			for seed := repeat.First() + 1; seed <= repeat.First()+uint64(repeat.Times(1, 4)); seed++ {
				moments := buildertest.Sweep(t, rules(rollup), seed, 9*repeat.Step())
				require.Greater(t, moments, 100)
				t.Logf("seed %d: %d moments to die at", seed, moments)
			}
		})
	}
}

// TestFaultsAreFound: each fault of a rollup is found within 200 seeds.
func TestFaultsAreFound(t *testing.T) {
	for name, spoil := range map[string]func(*words.Rollup){
		"nondeterministic": func(r *words.Rollup) {
			r.Hash = func(state []string) (root common.Hash) {
				root[0] = byte(len(state))
				if time.Now().Unix()%5 == 0 {
					root[1] = byte(len(state))
				}
				return root
			}
		},
		"wrong undo":                   func(r *words.Rollup) { r.Keeps = 1 },
		"forgets what was handed back": func(r *words.Rollup) { r.Forgets = true },
		"takes out what it proposes":   func(r *words.Rollup) { r.Takes = true },
		"executes a repeated word":     func(r *words.Rollup) { r.Repeats = true },
	} {
		t.Run(name, func(t *testing.T) {
			faulty := func() builder.Rollup[words.Body] {
				r := new(words.Rollup)
				spoil(r)
				return r
			}
			seed, problem := buildertest.Find(t, rules(faulty), 200)
			require.Error(t, problem)
			t.Logf("seed %d: %v", seed, problem)
		})
	}
	for name, fault := range map[string]struct {
		rollup  func() builder.Rollup[words.Body]
		problem string
	}{
		"executes what Admit refused": {func() builder.Rollup[words.Body] { return new(untidy) }, "which was refused"},
		"refuses everything":          {func() builder.Rollup[words.Body] { return new(closed) }, "little is tested"},
		"executes what it dropped":    {func() builder.Rollup[words.Body] { return new(dropping) }, "dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			c := rules(fault.rollup)
			c.Dropped = func(r builder.Rollup[words.Body]) [][]byte {
				if d, ok := r.(*dropping); ok {
					return d.all()
				}
				return nil
			}
			_, problem := buildertest.Find(t, c, 200)
			require.ErrorContains(t, problem, fault.problem)
		})
	}
	t.Run("Payload changes the body", func(t *testing.T) {
		_, problem := buildertest.Find(t, rules(func() builder.Rollup[words.Body] { return new(sorting) }), 200)
		require.ErrorContains(t, problem, "Payload changes the body")
	})
	t.Run("Apply changes the body", func(t *testing.T) {
		_, problem := buildertest.Find(t, rules(func() builder.Rollup[words.Body] { return new(turning) }), 200)
		require.ErrorContains(t, problem, "Apply changes the body")
	})
	t.Run("does not recognize what waits after Undo", func(t *testing.T) {
		seed, problem := buildertest.Find(t, rules(func() builder.Rollup[words.Body] { return &unlearning{known: make(map[string]bool)} }), 200)
		require.ErrorContains(t, problem, "a second time")
		t.Logf("seed %d: %v", seed, problem)
	})
	t.Run("forgets what is final", func(t *testing.T) {
		seed, problem := buildertest.Find(t, rules(func() builder.Rollup[words.Body] { return new(amnesiac) }), 50)
		require.ErrorContains(t, problem, "a second time")
		t.Logf("seed %d: %v", seed, problem)
	})
	t.Run("keeps the states of two checkpoints", func(t *testing.T) {
		seed, problem := buildertest.Find(t, filed(2), 200)
		require.ErrorContains(t, problem, "restore a checkpoint")
		t.Logf("seed %d: %v", seed, problem)
	})
	t.Run("does not recognize a change that its checkpoint has", func(t *testing.T) {
		faulty := func() builder.Rollup[words.Body] {
			return &words.Saving{Rollup: words.Rollup{Forgetful: true}}
		}
		_, problem := buildertest.Find(t, rules(faulty), 200)
		require.Error(t, problem)
	})
	t.Run("does not tell what it accepts", func(t *testing.T) {
		faulty := func() builder.Rollup[words.Body] { return &words.Rollup{Silent: true} }
		_, problem := buildertest.Find(t, rules(faulty), 200)
		require.ErrorContains(t, problem, "are not executed")
	})
}

// turning changes the body of a block when it is applied.
type turning struct{ words.Rollup }

func (r *turning) Apply(ctx context.Context, b builder.Block[words.Body]) error {
	defer slices.Reverse(b.Body)
	return r.Rollup.Apply(ctx, b)
}

// unlearning knows words by a set, from which Undo removes those that wait again.
type unlearning struct {
	words.Rollup
	mu    sync.Mutex
	known map[string]bool
}

func (r *unlearning) Admit(ctx context.Context, op []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[string(op)] {
		return nil
	}
	r.known[string(op)] = true
	r.Repeats = true
	return r.Rollup.Admit(ctx, op)
}

func (r *unlearning) Undo(ctx context.Context, b builder.Block[words.Body]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, word := range b.Body {
		delete(r.known, word)
	}
	return r.Rollup.Undo(ctx, b)
}

// untidy takes every third word, and then returns an error.
type untidy struct{ words.Rollup }

func (u *untidy) Admit(ctx context.Context, op []byte) error {
	if err := u.Rollup.Admit(ctx, op); err != nil || !thirdWord(op) {
		return err
	}
	return words.ErrWord
}

// closed is a rollup that refuses everything.
type closed struct{ words.Rollup }

func (*closed) Admit(context.Context, []byte) error { return words.ErrWord }

// dropping reports the first word as dropped, and executes it after a restart.
type dropping struct {
	words.Rollup
	mu      sync.Mutex
	dropped [][]byte
}

func (d *dropping) Propose(ctx context.Context, number uint64) (words.Body, common.Hash, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first := d.Waiting(); len(d.dropped) == 0 && len(first) == 1 && number < 3 {
		d.dropped = append(d.dropped, []byte(first[0]))
		d.Forget(first[0])
	}
	return d.Rollup.Propose(ctx, number)
}

func (d *dropping) all() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropped
}

// sorting sorts the words of a block in its payload.
type sorting struct{ words.Rollup }

func (s *sorting) Payload(ctx context.Context, b builder.Block[words.Body]) ([]byte, error) {
	slices.SortFunc(b.Body, func(a, b string) int { return strings.Compare(b, a) })
	return s.Rollup.Payload(ctx, b)
}

// amnesiac recognizes a word that is submitted again only until its block is final.
type amnesiac struct {
	words.Rollup
	mu    sync.Mutex
	final []string
}

func (a *amnesiac) Final(_ context.Context, b builder.Block[words.Body]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.final = append(a.final, b.Body...)
	return nil
}

func (a *amnesiac) Admit(ctx context.Context, op []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.final, string(op)) {
		a.Wait(string(op))
		return nil
	}
	return a.Rollup.Admit(ctx, op)
}

// filing is a rollup whose checkpoints are in files, with their names in the log: a
// builder.Pruner.
type filing struct {
	words.Saving
	// dir has the files. keeps, if it is not 0, is the number of files that Checkpoint keeps,
	// whatever the log has.
	dir   string
	keeps int

	names []string // of the files, oldest first
}

// Checkpoint implements builder.Checkpointer.
func (f *filing) Checkpoint(ctx context.Context) ([][]byte, error) {
	state, err := f.Saving.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%x", sha256.Sum256(state[0]))
	f.names = append(slices.DeleteFunc(f.names, func(n string) bool { return n == name }), name)
	if err := os.WriteFile(filepath.Join(f.dir, name), state[0], 0o600); err != nil || f.keeps == 0 {
		return [][]byte{[]byte(name)}, err
	}
	return [][]byte{[]byte(name)}, f.keep(f.keeps)
}

// Prune implements builder.Pruner.
func (f *filing) Prune(context.Context) error { return f.keep(1) }

// keep removes all files except the newest ones.
func (f *filing) keep(n int) error {
	for ; len(f.names) > n; f.names = f.names[1:] {
		if err := os.Remove(filepath.Join(f.dir, f.names[0])); err != nil {
			return err
		}
	}
	return nil
}

// Restore implements builder.Checkpointer.
func (f *filing) Restore(ctx context.Context, records [][]byte) error {
	state, err := os.ReadFile(filepath.Join(f.dir, string(records[0])))
	if err != nil {
		return err
	}
	f.names = []string{string(records[0])}
	return f.Saving.Restore(ctx, [][]byte{state})
}

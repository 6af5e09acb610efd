package buildertest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

// words is a rollup whose state is the list of the words that were executed.
type words struct {
	state, waiting []string
	// The faults of the faulty ones.
	random, wrongUndo, forgets bool
}

func (w *words) Admit(_ context.Context, op []byte) error {
	if !slices.Contains(w.waiting, string(op)) && !slices.Contains(w.state, string(op)) {
		w.waiting = append(w.waiting, string(op))
	}
	return nil
}

func (w *words) Propose(context.Context, uint64) ([]string, common.Hash, error) {
	n := min(3, len(w.waiting))
	if n == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	body := slices.Clone(w.waiting[:n])
	return body, w.root(append(slices.Clone(w.state), body...)), nil
}

func (w *words) Apply(_ context.Context, b builder.Block[[]string]) error {
	w.state = append(w.state, b.Body...)
	w.waiting = slices.DeleteFunc(w.waiting, func(op string) bool { return slices.Contains(b.Body, op) })
	return nil
}

func (w *words) Undo(_ context.Context, b builder.Block[[]string]) error {
	n := len(w.state) - len(b.Body)
	if w.wrongUndo && len(b.Body) > 1 {
		n++
	}
	if !w.forgets {
		w.waiting = append(slices.Clone(b.Body), w.waiting...)
	}
	w.state = w.state[:n]
	return nil
}

func (w *words) Root() common.Hash { return w.root(w.state) }

func (w *words) root(state []string) common.Hash {
	if w.random && len(state) > 0 && time.Now().Unix()%5 == 0 {
		return common.Hash{1}
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q", state))
}

func (w *words) Payload(_ context.Context, b builder.Block[[]string]) ([]byte, error) {
	return json.Marshal(b.Body)
}

// saving is the same with checkpoints.
type saving struct{ words }

func (s *saving) Checkpoint(context.Context) ([][]byte, error) {
	raw, err := json.Marshal([2][]string{s.state, s.waiting})
	return [][]byte{raw}, err
}

func (s *saving) Restore(_ context.Context, records [][]byte) error {
	var both [2][]string
	err := json.Unmarshal(records[0], &both)
	s.state, s.waiting = both[0], both[1]
	return err
}

func rules(rollup func() builder.Rollup[[]string]) buildertest.Case[[]string] {
	return buildertest.Case[[]string]{
		New:       rollup,
		Operation: func(i int) []byte { return fmt.Appendf(nil, "word %d", i) },
		Executed: func(payload []byte) (ops [][]byte) {
			var body []string
			if err := json.Unmarshal(payload, &body); err != nil {
				panic(err)
			}
			for _, op := range body {
				ops = append(ops, []byte(op))
			}
			return ops
		},
	}
}

// A rollup without faults passes, with and without checkpoints.
func TestRun(t *testing.T) {
	t.Run("log", func(t *testing.T) {
		buildertest.Run(t, rules(func() builder.Rollup[[]string] { return &words{} }))
	})
	t.Run("checkpoints", func(t *testing.T) {
		buildertest.Run(t, rules(func() builder.Rollup[[]string] { return &saving{} }))
	})
}

// Each fault of a rollup is found within 200 seeds.
func TestFaultsAreFound(t *testing.T) {
	for name, faulty := range map[string]words{
		"nondeterministic":             {random: true},
		"wrong undo":                   {wrongUndo: true},
		"forgets what was handed back": {forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed, problem := buildertest.Find(t, rules(func() builder.Rollup[[]string] { w := faulty; return &w }), 200)
			require.Error(t, problem)
			t.Logf("seed %d: %v", seed, problem)
		})
	}
}

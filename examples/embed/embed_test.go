// Package embed holds the program of the README: a rollup, from nothing to a final
// operation.
package embed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/journal"
)

// book is a rollup: users write lines into a book, all of them different.
type book struct {
	builder.List            // the lines that wait
	mu           sync.Mutex // Admit is called concurrently with the others
	lines        [][]byte
}

func (b *book) Admit(ctx context.Context, line []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.lines, func(l []byte) bool { return bytes.Equal(l, line) }) {
		return nil // its user had no answer, and sends it again
	}
	return b.List.Admit(ctx, line) // the builder writes it to the log, and answers the user
}

func (b *book) Propose(context.Context, uint64) (block [][]byte, root common.Hash, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if block = b.Waiting(); len(block) == 0 {
		return nil, root, builder.ErrIdle
	}
	return block, hash(slices.Concat(b.lines, block)), nil
}

func (b *book) Apply(_ context.Context, block builder.Block[[][]byte]) error { // it is in the log
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, block.Body...)
	b.Executed(block.Body...)
	return nil
}

func (b *book) Undo(_ context.Context, block builder.Block[[][]byte]) error { // it has failed
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = b.lines[:len(b.lines)-len(block.Body)]
	b.Returned(block.Body...)
	return nil
}

func (b *book) Root() common.Hash {
	b.mu.Lock()
	defer b.mu.Unlock()
	return hash(b.lines)
}

func (b *book) Payload(_ context.Context, block builder.Block[[][]byte]) ([]byte, error) {
	return json.Marshal(block.Body) // for the rollup's service
}

func hash(lines [][]byte) common.Hash { return sha256.Sum256(fmt.Appendf(nil, "%q", lines)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// end of the rollup

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	network := must(simnet.Tiny(50*time.Millisecond, 7, nil)) // a simulated JAM; 7 is the service
	go network.Run(ctx, nil)
	log := new(journal.Memory) // or Pebble, to survive the process

	b := must(builder.Open(ctx, builder.DefaultConfig(network.Spec()), log, &book{}, network))
	go b.Run(ctx)
	fmt.Println("accepted:", b.Submit(ctx, []byte("hello")))
	fmt.Println("final:", b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
	// Output:
	// accepted: <nil>
	// final: <nil>
}

// TestReadme compares the programs in the README with this file.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	file, err := os.ReadFile("embed_test.go")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "```")
	require.True(t, found)
	rollup, main, found := strings.Cut(program, "// main\n")
	require.True(t, found)
	require.Contains(t, string(file), strings.TrimSpace(rollup))
	require.Contains(t, strings.ReplaceAll(string(file), "\n\t", "\n"), strings.TrimSpace(main))
}

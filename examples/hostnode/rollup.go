package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/builder"
)

// counter is the smallest rollup: it counts its operations, which are distinct, and a block has
// one. The zero value is the genesis.
type counter struct {
	builder.List            // the operations that wait
	mu           sync.Mutex // Admit is called concurrently with the others
	executed     [][]byte
}

// Admit implements builder.Rollup.
func (c *counter) Admit(ctx context.Context, op []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.executed, func(e []byte) bool { return bytes.Equal(e, op) }) {
		return nil
	}
	return c.List.Admit(ctx, op)
}

// Propose implements builder.Rollup.
func (c *counter) Propose(context.Context, uint64) ([]byte, common.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.Waiting()
	if len(waiting) == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	return waiting[0], root(len(c.executed) + 1), nil
}

// Apply implements builder.Rollup.
func (c *counter) Apply(_ context.Context, b builder.Block[[]byte]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.executed = append(c.executed, b.Body)
	c.Executed(b.Body)
	return nil
}

// Undo implements builder.Rollup.
func (c *counter) Undo(_ context.Context, b builder.Block[[]byte]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.executed = c.executed[:len(c.executed)-1]
	c.Returned(b.Body)
	return nil
}

// Root implements builder.Rollup.
func (c *counter) Root() common.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return root(len(c.executed))
}

func root(count int) (r common.Hash) {
	binary.BigEndian.PutUint64(r[len(r)-8:], uint64(count))
	return r
}

// Payload implements builder.Rollup.
func (c *counter) Payload(_ context.Context, b builder.Block[[]byte]) ([]byte, error) {
	return b.Body, nil
}

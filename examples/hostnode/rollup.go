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
	mu      sync.Mutex // Admit is called concurrently with the others
	count   uint64
	waiting [][]byte
	known   [][]byte // all that were accepted
}

// Admit implements builder.Rollup.
func (c *counter) Admit(_ context.Context, op []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.known, func(k []byte) bool { return bytes.Equal(k, op) }) {
		c.waiting, c.known = append(c.waiting, op), append(c.known, op)
	}
	return nil
}

// Propose implements builder.Rollup.
func (c *counter) Propose(context.Context, uint64) ([]byte, common.Hash, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil, common.Hash{}, builder.ErrIdle
	}
	return c.waiting[0], root(c.count + 1), nil
}

// Apply implements builder.Rollup.
func (c *counter) Apply(_ context.Context, b builder.Block[[]byte]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.waiting = slices.DeleteFunc(c.waiting, func(op []byte) bool { return bytes.Equal(op, b.Body) })
	return nil
}

// Undo implements builder.Rollup.
func (c *counter) Undo(_ context.Context, b builder.Block[[]byte]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count, c.waiting = c.count-1, append([][]byte{b.Body}, c.waiting...)
	return nil
}

// Root implements builder.Rollup.
func (c *counter) Root() common.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return root(c.count)
}

func root(count uint64) (r common.Hash) {
	binary.BigEndian.PutUint64(r[len(r)-8:], count)
	return r
}

// Payload implements builder.Rollup.
func (c *counter) Payload(_ context.Context, b builder.Block[[]byte]) ([]byte, error) {
	return b.Body, nil
}

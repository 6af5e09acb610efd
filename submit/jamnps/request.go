package jamnps

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/submit/codec"
)

// Direction says which way a request for blocks goes.
type Direction byte

const (
	// Ascending asks for children: the blocks after the one that is named, the oldest first, without it.
	Ascending Direction = iota
	// Descending asks for ancestors: the one that is named and those before it, the newest first.
	Descending
)

// Blocks asks a peer, by its index in Config.Peers, for at most so many blocks (CE 128). They are what the peer says: see [codec.Codec.Imported]
// for what a block proves by itself. Errors wrap ErrRefused, ErrDisconnected, ErrMalformed, ErrTooLarge, ErrClosed or ctx's error.
func (c *Client) Blocks(ctx context.Context, peer int, from jamq.HeaderHash, direction Direction, most uint32) ([]codec.Block, error) {
	ask := append(append([]byte{}, from[:]...), byte(direction))
	ask = binary.LittleEndian.AppendUint32(ask, most)
	p, err := c.peer(peer)
	if err != nil {
		return nil, err
	}
	var blocks []codec.Block
	err = c.request(ctx, p, BlockRequest, [][]byte{ask}, func(r io.Reader) error {
		raw, err := ReadMessage(r, c.cfg.MaxBlocks)
		if err != nil {
			return err
		}
		for len(raw) > 0 {
			var b codec.Block
			if b, raw, err = codec.DecodePrefix[codec.Block](c.cfg.Codec, raw); err != nil {
				return fmt.Errorf("%w: block %d: %w", ErrMalformed, len(blocks), err)
			}
			if blocks = append(blocks, b); uint64(len(blocks)) > uint64(most) {
				return fmt.Errorf("%w: more than %d blocks", ErrMalformed, most)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return blocks, nil
}

// State is a part of a block's posterior state.
type State struct {
	// Boundary are the trie's nodes on the ways to the first and the last key.
	Boundary []proof.StateNode
	// Entries are in the order of keys.
	Entries []proof.StateEntry
}

// Verify checks that the state with the given root has exactly these entries between two keys, both included. The error wraps ErrMalformed. Where the peer has
// left out entries at the end, because of the size that it was asked for, the last one is the last key that it speaks of.
func (s *State) Verify(root common.Hash, from, to proof.StateKey) error {
	if err := proof.VerifyStateRange(root, from, to, s.Entries, s.Boundary); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// State asks a peer for the part of the state after a block that lies between two keys, both included, at most so many bytes of it (CE 129).
// It is what the peer says, until [State.Verify] has held it against a state root. Errors are those of Blocks.
func (c *Client) State(ctx context.Context, peer int, block jamq.HeaderHash, from, to proof.StateKey, most uint32) (*State, error) {
	p, err := c.peer(peer)
	if err != nil {
		return nil, err
	}
	ask := append(append(append([]byte{}, block[:]...), from[:]...), to[:]...)
	ask = binary.LittleEndian.AppendUint32(ask, most)
	s := &State{}
	err = c.request(ctx, p, StateRequest, [][]byte{ask}, func(r io.Reader) error {
		nodes, err := ReadMessage(r, c.cfg.MaxState)
		if err != nil {
			return err
		}
		if len(nodes)%64 != 0 {
			return fmt.Errorf("%w: boundary of %d bytes, want a multiple of 64", ErrMalformed, len(nodes))
		}
		for ; len(nodes) > 0; nodes = nodes[64:] {
			s.Boundary = append(s.Boundary, proof.StateNode(nodes))
		}
		raw, err := ReadMessage(r, c.cfg.MaxState)
		if err != nil {
			return err
		}
		return s.decodeEntries(raw, from, to)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *State) decodeEntries(raw []byte, from, to proof.StateKey) error {
	for len(raw) > 0 {
		var v proof.StateEntry
		if len(raw) < len(v.Key) {
			return fmt.Errorf("%w: key of %d bytes", ErrMalformed, len(raw))
		}
		copy(v.Key[:], raw)
		size, rest, err := codec.DecodeNatural(raw[len(v.Key):])
		if err != nil || size > uint64(len(rest)) {
			return fmt.Errorf("%w: value of %d bytes in %d: %v", ErrMalformed, size, len(rest), err)
		}
		v.Value, raw = append([]byte(nil), rest[:size]...), rest[size:]
		if string(v.Key[:]) < string(from[:]) || string(v.Key[:]) > string(to[:]) {
			return fmt.Errorf("%w: key %x was not asked for", ErrMalformed, v.Key)
		}
		if n := len(s.Entries); n > 0 && string(s.Entries[n-1].Key[:]) >= string(v.Key[:]) {
			return fmt.Errorf("%w: key %x is out of order", ErrMalformed, v.Key)
		}
		s.Entries = append(s.Entries, v)
	}
	return nil
}

// peer returns the peer at an index of Config.Peers. The error wraps ErrInvalidConfig.
func (c *Client) peer(index int) (*peer, error) {
	if index < 0 || index >= len(c.peers) {
		return nil, fmt.Errorf("%w: peer %d, want below %d", ErrInvalidConfig, index, len(c.peers))
	}
	return c.peers[index], nil
}

// anyPeer tries a request with each peer in turn until one answers: first the one that should know, if there is one, then those that are connected, at
// last those among them that did not answer in time before. Others are asked only where nobody is connected, since that can take as long as to connect.
func anyPeer[T any](c *Client, knows *peer, ask func(peer int) (T, error)) (T, error) {
	ranks := make(map[*peer]int, len(c.peers))
	for _, p := range c.peers {
		if p != knows {
			ranks[p] = p.rank()
		}
	}
	peers := slices.Clone(c.peers)
	slices.SortStableFunc(peers, func(a, b *peer) int { return cmp.Compare(ranks[a], ranks[b]) })
	var none T
	var failed error
	for i, p := range peers {
		if i > 0 && ranks[p] == away && ranks[peers[0]] != away {
			break
		}
		v, err := ask(p.index)
		if err == nil || errors.Is(err, ErrClosed) {
			return v, err
		}
		failed = errors.Join(failed, err)
	}
	return none, failed
}

// rank orders peers by how soon an answer can be hoped for.
func (p *peer) rank() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conn == nil || p.conn.Context().Err() != nil:
		return away
	case p.mute:
		return mute
	}
	return ready
}

// How soon an answer can be hoped for, after the peer that should know.
const (
	ready = iota + 1
	mute
	away
)

package jamnps

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jamq/jamq"
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
	var blocks []codec.Block
	err := c.request(ctx, c.peers[peer], BlockRequest, [][]byte{ask}, func(r io.Reader) error {
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

// StateKey is a key of the state trie.
type StateKey [31]byte

// ChapterKey returns the key of a state chapter, such as 3 for C(3) (GP D.1).
func ChapterKey(chapter byte) StateKey { return StateKey{chapter} }

// StateValue is a key of a state with its value.
type StateValue struct {
	Key   StateKey
	Value []byte
}

// State is a part of a block's posterior state.
type State struct {
	// Boundary are the trie's nodes on the ways to the first and the last key, 64 bytes each, from the root down.
	Boundary [][64]byte
	// Values are in the order of keys.
	Values []StateValue
}

// State asks a peer for the part of the state after a block that lies between two keys, both included, at most so many bytes of it (CE 129).
// It is what the peer says: whoever wants proof holds Boundary against a state root. Errors are those of Blocks.
func (c *Client) State(ctx context.Context, peer int, block jamq.HeaderHash, from, to StateKey, most uint32) (*State, error) {
	ask := append(append(append([]byte{}, block[:]...), from[:]...), to[:]...)
	ask = binary.LittleEndian.AppendUint32(ask, most)
	s := &State{}
	err := c.request(ctx, c.peers[peer], StateRequest, [][]byte{ask}, func(r io.Reader) error {
		nodes, err := ReadMessage(r, c.cfg.MaxState)
		if err != nil {
			return err
		}
		if len(nodes)%64 != 0 {
			return fmt.Errorf("%w: boundary of %d bytes, want a multiple of 64", ErrMalformed, len(nodes))
		}
		for ; len(nodes) > 0; nodes = nodes[64:] {
			s.Boundary = append(s.Boundary, [64]byte(nodes))
		}
		raw, err := ReadMessage(r, c.cfg.MaxState)
		if err != nil {
			return err
		}
		return s.decodeValues(raw, from, to)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *State) decodeValues(raw []byte, from, to StateKey) error {
	for len(raw) > 0 {
		var v StateValue
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
		if n := len(s.Values); n > 0 && string(s.Values[n-1].Key[:]) >= string(v.Key[:]) {
			return fmt.Errorf("%w: key %x is out of order", ErrMalformed, v.Key)
		}
		s.Values = append(s.Values, v)
	}
	return nil
}

// anyPeer tries a request with each peer in turn, beginning with those that are connected, until one answers.
func anyPeer[T any](c *Client, ask func(peer int) (T, error)) (T, error) {
	var none T
	var failed error
	for _, connected := range []bool{true, false} {
		for i, p := range c.peers {
			if _, _, up := p.announcedBy(); up != connected {
				continue
			}
			v, err := ask(i)
			if err == nil || errors.Is(err, ErrClosed) {
				return v, err
			}
			failed = errors.Join(failed, err)
		}
	}
	return none, failed
}

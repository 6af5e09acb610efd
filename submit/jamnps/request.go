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
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// direction selects whether a request for blocks returns a block's descendants or its
// ancestors.
type direction byte

const (
	// ascending requests the descendants of the named block, oldest first, without the
	// named block itself.
	ascending direction = iota
	// descending requests the named block and its ancestors, newest first.
	descending
)

// fetchBlocks requests blocks from a peer (CE 128), at most the given number. peer is
// the peer's index in Config.Peers. fetchBlocks does not verify the blocks;
// [codec.Codec.Imported] checks the parts of a block to which its header commits.
// fetchBlocks ignores surplus blocks in the answer, because some nodes count in another
// way. It also cuts the answer after 100,000 preimages.
//
// An answer needs at most about three times Config.MaxBlocks of memory, plus 8 MiB. If
// the answer is larger than Config.MaxBlocks, the error wraps ErrTooLarge, and the
// caller can request fewer blocks. Other errors wrap ErrRefused, ErrDisconnected,
// ErrMalformed, ErrInvalidConfig (for an unknown peer), ErrClosed or the error of ctx.
func (c *Client) fetchBlocks(ctx context.Context, peer int, from jamq.HeaderHash, direction direction, most uint32) ([]codec.Block, error) {
	ask := append(append([]byte{}, from[:]...), byte(direction))
	ask = binary.LittleEndian.AppendUint32(ask, most)
	p, err := c.peer(peer)
	if err != nil {
		return nil, err
	}
	var blocks []codec.Block
	err = c.request(ctx, p, blockRequest, [][]byte{ask}, func(r io.Reader) error {
		raw, err := readMessage(r, c.cfg.MaxBlocks)
		if err != nil {
			return err
		}
		blocks, err = decodeBlocks(c.cfg.Codec, raw, most)
		return err
	})
	if err != nil {
		return nil, err
	}
	return blocks, nil
}

// maxPreimages is the number of preimages in an answer after which no further block is
// decoded. This limits the memory, because an almost empty preimage takes about 32
// bytes, several times the size of its encoding.
const maxPreimages = 100_000

// decodeBlocks decodes the first blocks of an answer: at most the given number, and
// fewer if they contain many preimages.
func decodeBlocks(c *codec.Codec, raw []byte, most uint32) (blocks []codec.Block, err error) {
	for preimages := 0; len(raw) > 0 && uint64(len(blocks)) < uint64(most) && preimages < maxPreimages; {
		var b codec.Block
		if b, raw, err = codec.DecodePrefix[codec.Block](c, raw); err != nil {
			return nil, fmt.Errorf("%w: block %d: %w", ErrMalformed, len(blocks), err)
		}
		blocks = append(blocks, b)
		preimages += len(b.Extrinsic.Preimages)
	}
	return blocks, nil
}

// stateRange is a peer's answer to a request for a range of keys of the JAM state.
type stateRange struct {
	// Boundary contains the trie nodes on the paths from the root to the first and to the
	// last key. They prove that the range is complete.
	Boundary []statetrie.Node
	// Entries are the keys and values in the range, in ascending order of key.
	Entries []statetrie.Entry
}

// Verify checks that the state with the given root has exactly these entries between
// two keys, inclusive. The error wraps ErrMalformed.
//
// A peer may leave out entries at the end because the request limits the size of the
// answer. The answer can then be verified only up to its last entry: pass the key of
// this entry as to, and request the rest separately.
func (s *stateRange) Verify(root common.Hash, from, to statetrie.Key) error {
	if err := statetrie.VerifyRange(root, from, to, s.Entries, s.Boundary); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// fetchState requests the entries of the state after a block whose keys are between two
// keys, inclusive (CE 129). most is the maximum size of the answer in bytes. fetchState
// does not verify the answer, so the caller must call stateRange.Verify. Errors are
// those of fetchBlocks.
func (c *Client) fetchState(ctx context.Context, peer int, block jamq.HeaderHash, from, to statetrie.Key, most uint32) (*stateRange, error) {
	p, err := c.peer(peer)
	if err != nil {
		return nil, err
	}
	ask := append(append(append([]byte{}, block[:]...), from[:]...), to[:]...)
	ask = binary.LittleEndian.AppendUint32(ask, most)
	s := &stateRange{}
	err = c.request(ctx, p, stateRequest, [][]byte{ask}, func(r io.Reader) error {
		nodes, err := readMessage(r, c.cfg.MaxState)
		if err != nil {
			return err
		}
		if len(nodes)%64 != 0 {
			return fmt.Errorf("%w: boundary of %d bytes, want a multiple of 64", ErrMalformed, len(nodes))
		}
		s.Boundary = make([]statetrie.Node, 0, len(nodes)/64)
		for ; len(nodes) > 0; nodes = nodes[64:] {
			s.Boundary = append(s.Boundary, statetrie.Node(nodes))
		}
		raw, err := readMessage(r, c.cfg.MaxState)
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

func (s *stateRange) decodeEntries(raw []byte, from, to statetrie.Key) error {
	for len(raw) > 0 {
		var v statetrie.Entry
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
			return fmt.Errorf("%w: key %x is outside the requested range", ErrMalformed, v.Key)
		}
		if n := len(s.Entries); n > 0 && string(s.Entries[n-1].Key[:]) >= string(v.Key[:]) {
			return fmt.Errorf("%w: key %x is out of order", ErrMalformed, v.Key)
		}
		s.Entries = append(s.Entries, v)
	}
	return nil
}

// Account returns the account of a service after a block, or nil if there is no such
// service. The account is encoded as in the state trie. Account does not verify the
// answer, so it trusts the first peer that answers. The error joins the errors of all
// peers.
func (c *Client) Account(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID) ([]byte, error) {
	const most = 4096 // an account has about a hundred bytes
	key := statetrie.ServiceKey(service)
	found, err := anyPeer(c, nil, func(peer int) (*stateRange, error) { return c.fetchState(ctx, peer, block, key, key, most) })
	if err != nil || len(found.Entries) == 0 {
		return nil, err
	}
	return found.Entries[0].Value, nil
}

// Justification returns a GRANDPA proof that a block is final (CE 130), which
// proof.ParseJustification of package canonical/proof decodes. Justification itself
// verifies nothing. It asks one peer after the other and returns the first answer for
// which accept returns nil, so that a host can skip a peer that lies. If accept is nil,
// it returns the first answer. CE 130 is a draft, and few nodes support it. The error
// joins the errors of all peers.
func (c *Client) Justification(ctx context.Context, block jamq.HeaderHash, accept func(raw []byte) error) ([]byte, error) {
	return anyPeer(c, nil, func(peer int) ([]byte, error) {
		p, err := c.peer(peer)
		if err != nil {
			return nil, err
		}
		var raw []byte
		err = c.request(ctx, p, justificationRequest, [][]byte{block[:]}, func(r io.Reader) (err error) {
			raw, err = readMessage(r, c.cfg.MaxState)
			return err
		})
		if err == nil && accept != nil {
			err = accept(raw)
		}
		return raw, err
	})
}

// peer returns the peer with an index in Config.Peers. The error wraps ErrInvalidConfig
// if there is no such peer.
func (c *Client) peer(index int) (*peer, error) {
	if index < 0 || index >= len(c.peers) {
		return nil, fmt.Errorf("%w: peer %d, want below %d", ErrInvalidConfig, index, len(c.peers))
	}
	return c.peers[index], nil
}

// anyPeer sends a request to one peer after the other until one of them answers. It
// tries them in this order:
//
//   - the peer knows, which should have the data, unless knows is nil
//   - the other connected peers
//   - connected peers that did not answer their last request in time
//   - peers without a connection, but only if no peer is connected, because
//     connecting can take long
//
// If no peer answers, the error joins the errors of all.
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

// rank returns how soon a peer is expected to answer: ready, unresponsive or
// away.
func (p *peer) rank() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.conn == nil || p.conn.Context().Err() != nil:
		return away
	case p.unresponsive:
		return unresponsive
	}
	return ready
}

// The ranks of peers, in the order in which anyPeer tries them. The peer that should
// have the data comes before all others, with rank 0.
const (
	ready = iota + 1
	unresponsive
	away
)

package jamnps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// leaf identifies an announced block by the hash of its header and its slot.
type leaf struct {
	hash jamq.HeaderHash
	slot jamq.Slot
}

// handshake is the first message that each side sends on a stream for block
// announcements (UP 0). It contains the sender's finalized block and the heads of all
// forks after that block.
type handshake struct {
	final  leaf
	leaves []leaf
}

const leafSize = 32 + 4

func appendLeaf(b []byte, l leaf) []byte {
	return binary.LittleEndian.AppendUint32(append(b, l.hash[:]...), uint32(l.slot))
}

func readLeaf(b []byte) leaf {
	return leaf{hash: jamq.HeaderHash(b[:32]), slot: jamq.Slot(binary.LittleEndian.Uint32(b[32:leafSize]))}
}

func (h *handshake) encode() []byte {
	b := appendLeaf(nil, h.final)
	b = codec.AppendNatural(b, uint64(len(h.leaves)))
	for _, l := range h.leaves {
		b = appendLeaf(b, l)
	}
	return b
}

func decodeHandshake(b []byte) (h handshake, err error) {
	if len(b) < leafSize {
		return h, fmt.Errorf("%w: handshake of %d bytes", ErrMalformed, len(b))
	}
	h.final = readLeaf(b)
	n, b, err := codec.DecodeNatural(b[leafSize:])
	if err != nil || n != uint64(len(b)/leafSize) || len(b)%leafSize != 0 {
		return h, fmt.Errorf("%w: handshake with %d leaves in %d bytes: %v", ErrMalformed, n, len(b), err)
	}
	for ; len(b) > 0; b = b[leafSize:] {
		h.leaves = append(h.leaves, readLeaf(b))
	}
	return h, nil
}

// The limits for announcements. JAMNP-S does not limit the number of leaves in a
// handshake, so the client keeps only a peer's newest leaves: see heads.trim.
const (
	maxLeaves       = 1024
	maxHandshake    = 1 << 20 // bytes, for about 29,000 leaves
	maxAnnouncement = 1 << 20 // bytes; the largest header has 66 kB
)

// heads records a peer's announcements: its finalized block and the heads of its forks.
type heads struct {
	known  bool // handshake completed
	final  leaf
	leaves map[jamq.HeaderHash]jamq.Slot
}

// begin records a peer's handshake.
func (h *heads) begin(theirs handshake) {
	// The peer may have sent a handshake on another stream before. The heads that it has
	// announced since then stay valid.
	if !h.known {
		*h = heads{known: true, leaves: make(map[jamq.HeaderHash]jamq.Slot)}
	}
	h.final = theirs.final
	for _, l := range theirs.leaves {
		h.leaves[l.hash] = l.slot
	}
	h.trim()
}

// add records a block that a peer has announced. The block replaces its parent as a
// head.
func (h *heads) add(l leaf, parent jamq.HeaderHash, final leaf) {
	h.final = final
	delete(h.leaves, parent)
	h.leaves[l.hash] = l.slot
	h.trim()
}

// trim removes leaves that are too old or too many.
func (h *heads) trim() {
	maps.DeleteFunc(h.leaves, func(_ jamq.HeaderHash, slot jamq.Slot) bool { return slot < h.final.slot })
	// Sorting all heads at each announcement would be slow. So heads are removed for their
	// number only when there are more than twice as many as wanted.
	if len(h.leaves) <= 2*maxLeaves {
		return
	}
	all := h.sorted()
	for _, l := range all[:len(all)-maxLeaves] {
		delete(h.leaves, l.hash)
	}
}

// compare orders leaves by slot, and leaves of the same slot by hash.
func (l leaf) compare(other leaf) int {
	return cmp.Or(cmp.Compare(l.slot, other.slot), bytes.Compare(l.hash[:], other.hash[:]))
}

// sorted returns the leaves in slot order, oldest first.
func (h *heads) sorted() []leaf {
	out := make([]leaf, 0, len(h.leaves))
	for hash, slot := range h.leaves {
		out = append(out, leaf{hash, slot})
	}
	slices.SortFunc(out, leaf.compare)
	return out
}

// keepListening keeps a stream for a peer's announcements (UP 0) open.
func (c *Client) keepListening(p *peer, conn *quic.Conn) {
	for conn.Context().Err() == nil {
		p.mu.Lock()
		listening := p.ups[conn] > 0
		p.mu.Unlock()
		// The peer has opened no stream for announcements, so the client opens one. If the peer
		// refuses it, the connection stays, because the peer may still accept packages.
		if !listening {
			if stream, err := conn.OpenStreamSync(c.ctx); err == nil {
				if _, err = stream.Write([]byte{byte(blockAnnouncement)}); err == nil {
					c.follow(p, conn, stream)
				} else {
					reset(stream)
				}
			}
		}
		timer := time.NewTimer(c.cfg.RetryAfter)
		select {
		case <-timer.C:
		case <-conn.Context().Done():
		case <-c.ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// follow reads announcements from a stream (UP 0) until the stream ends.
func (c *Client) follow(p *peer, conn *quic.Conn, stream *quic.Stream) {
	p.mu.Lock()
	// According to JAMNP-S, only the stream with the greatest id counts if both sides
	// open one. The client listens to all of them, because some peers announce on the
	// oldest stream, and some disconnect if a stream is reset. A peer that keeps only
	// one stream resets the others itself.
	p.ups[conn]++
	p.mu.Unlock()
	stop := context.AfterFunc(c.ctx, func() { reset(stream) })
	defer stop()
	err := c.listen(p, stream)
	reset(stream)
	p.mu.Lock()
	if p.ups[conn]--; p.ups[conn] == 0 {
		delete(p.ups, conn)
	}
	if len(p.ups) == 0 {
		p.heads.known = false
	}
	p.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	p.ended.Do(func() { c.log.Info("announcements ended", "peer", p.Addr, "err", err) })
	if errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge) {
		_ = conn.CloseWithError(0, "malformed announcement")
	}
}

func (c *Client) listen(p *peer, stream *quic.Stream) error {
	c.mu.Lock()
	own := c.own
	c.mu.Unlock()
	ours := own()
	if err := writeMessage(stream, ours.encode()); err != nil {
		return err
	}
	raw, err := readMessage(stream, maxHandshake)
	if err != nil {
		return err
	}
	theirs, err := decodeHandshake(raw)
	if err != nil {
		return err
	}
	theirs.final = c.finalOr(theirs.final)
	p.mu.Lock()
	p.heads.begin(theirs)
	p.mu.Unlock()
	for {
		c.wake()
		raw, err := readMessage(stream, maxAnnouncement)
		if err != nil {
			return err
		}
		header, rest, err := codec.DecodePrefix[codec.Header](c.cfg.Codec, raw)
		if err != nil || len(rest) != leafSize {
			return fmt.Errorf("%w: announcement of %d bytes: %v", ErrMalformed, len(raw), err)
		}
		hash, err := c.cfg.Codec.HeaderHash(&header)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.heads.add(leaf{hash, header.Slot}, header.Parent, c.finalOr(readLeaf(rest)))
		p.mu.Unlock()
	}
}

// finalOr returns a peer's final block. A node without finality may send a zero hash,
// for which finalOr returns the genesis block.
func (c *Client) finalOr(final leaf) leaf {
	if final.hash.IsZero() {
		return leaf{hash: c.cfg.Genesis}
	}
	return final
}

// wake makes the feed catch up immediately, because a peer has announced
// something.
func (c *Client) wake() {
	select {
	case c.announced <- struct{}{}:
	default:
	}
}

// forget drops a head that a peer has announced, because the feed can never deliver this
// block, so that the feed does not try again.
func (p *peer) forget(l leaf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.heads.leaves, l.hash)
	if p.heads.final == l {
		p.heads.final = leaf{}
	}
}

// announced returns the newest final block and the heads that a peer has announced. known
// is false if the peer is not connected or has announced nothing yet.
func (p *peer) announced() (final leaf, leaves []leaf, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heads.final, p.heads.sorted(), p.heads.known && p.conn != nil && p.conn.Context().Err() == nil
}

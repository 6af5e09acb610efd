package jamnps

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
)

// Client connects a builder to the nodes of a JAM network. It sends requests to the
// nodes, and receives their announcements of blocks. [Open] creates a client. Its
// methods are safe for concurrent use.
type Client struct {
	cfg         Config
	log         *slog.Logger
	certificate tls.Certificate
	socket      net.PacketConn
	transport   *quic.Transport
	ctx         context.Context
	cancel      context.CancelFunc
	work        sync.WaitGroup // goroutines of connections and UP streams
	peers       []*peer
	announced   chan struct{} // capacity 1; has a value after an announcement
	clock       jamq.SlotClock
	assigned    atomic.Pointer[assignment] // set by a feed; nil if unknown

	mu     sync.Mutex
	closed bool
	own    func() handshake // returns the blocks that the client announces to peers
}

// peer is a node of the network, with the client's connection to it, if any.
type peer struct {
	Peer
	index int
	busy  chan struct{} // capacity 1; held while connecting

	mu           sync.Mutex
	conn         *quic.Conn
	failedAt     time.Time
	failure      error
	unresponsive bool // the last request has timed out
	heads        heads
	ups          map[*quic.Conn]int // number of open UP 0 streams

	stateDrops   atomic.Int32 // see maxStateDrops
	ended, forks feed.Seldom  // limit log messages that the peer can cause
}

// certificateFrom and certificateUntil are the validity period of the client's
// certificate. Peers ignore this period, but TLS libraries require one.
var (
	certificateFrom  = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	certificateUntil = certificateFrom.AddDate(100, 0, 0)
)

// Open returns a client with an open UDP socket. The client connects to a peer at the
// first request to that peer. Errors wrap ErrInvalidConfig or ErrCertificate, or are
// those of the operating system.
func Open(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	local, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: Listen: %w", ErrInvalidConfig, err)
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, fmt.Errorf("jamnps: %w", err)
	}
	c, err := openOn(socket, cfg)
	if err != nil {
		_ = socket.Close()
	}
	return c, err
}

// openOn returns a client that uses the given socket. Client.Close closes the socket.
func openOn(socket net.PacketConn, cfg Config) (*Client, error) {
	certificate, err := newCertificate(cfg.Key, certificateFrom, certificateUntil)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, log: cfg.Logger, certificate: certificate, socket: socket, transport: &quic.Transport{Conn: socket}, announced: make(chan struct{}, 1),
		clock: jamq.NewSlotClock(cfg.Codec.Spec()),
		own:   func() handshake { return handshake{final: leaf{hash: cfg.Genesis}} },
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for i, p := range cfg.Peers {
		c.peers = append(c.peers, &peer{Peer: p, index: i, busy: make(chan struct{}, 1), ups: make(map[*quic.Conn]int)})
	}
	return c, nil
}

// Config returns the configuration of the client. The caller must not change its slices.
func (c *Client) Config() Config { return c.cfg }

// Close closes all connections, fails the pending requests, and waits until the
// client's goroutines have ended. Further calls have no effect.
func (c *Client) Close() {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	if !was {
		for _, p := range c.peers {
			p.mu.Lock()
			if p.conn != nil {
				_ = p.conn.CloseWithError(0, "")
			}
			p.mu.Unlock()
		}
		_ = c.transport.Close()
		_ = c.socket.Close()
	}
	c.work.Wait()
}

// connect returns a working connection to a peer, and dials the peer if there is none.
func (c *Client) connect(ctx context.Context, p *peer) (*quic.Conn, error) {
	select {
	// Only one goroutine dials the peer at a time.
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrDisconnected, ctx.Err())
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	p.mu.Lock()
	conn, failedAt, failure := p.conn, p.failedAt, p.failure
	p.mu.Unlock()
	if conn != nil && conn.Context().Err() == nil {
		return conn, nil
	}
	// After a failed attempt, calls fail at once until Config.RetryAfter has passed.
	if failure != nil && time.Since(failedAt) < c.cfg.RetryAfter {
		return nil, fmt.Errorf("%w: %s failed %v ago: %w", ErrDisconnected, p.Addr, time.Since(failedAt).Round(time.Millisecond), failure)
	}
	conn, err := c.dial(ctx, p)
	p.mu.Lock()
	p.conn, p.failure, p.failedAt = conn, err, time.Now()
	if ctx.Err() != nil { // the caller gave up
		p.failure = nil
	}
	p.mu.Unlock()
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, ErrClosed
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrDisconnected, p.Addr, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.CloseWithError(0, "")
		return nil, ErrClosed
	}
	c.work.Go(func() { c.serve(p, conn) })
	return conn, nil
}

// drop closes a broken connection, so that the next request makes a new one.
func (p *peer) drop(conn *quic.Conn) {
	_ = conn.CloseWithError(0, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == conn {
		p.conn = nil
	}
}

func (c *Client) dial(ctx context.Context, p *peer) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	addr, err := net.ResolveUDPAddr("udp", p.Addr)
	if err != nil {
		return nil, err
	}
	// A peer that does not know the protocol for builders accepts a builder as a node.
	protocols := []string{alpn(c.cfg.Genesis, true), alpn(c.cfg.Genesis, false)}
	conf := tlsConfig(c.certificate, protocols, func(key ed25519.PublicKey) error {
		if !bytes.Equal(key, p.Key) {
			return fmt.Errorf("%w: the key of another peer", ErrCertificate)
		}
		return nil
	})
	return c.transport.Dial(ctx, addr, conf, &quic.Config{
		HandshakeIdleTimeout: c.cfg.DialTimeout, MaxIdleTimeout: c.cfg.IdleTimeout, KeepAlivePeriod: c.cfg.IdleTimeout / 3,
		MaxIncomingStreams: maxIncoming, MaxIncomingUniStreams: -1,
	})
}

// maxIncoming is the maximum number of streams that a peer may open to the client. A
// peer needs only one, for its announcements.
const maxIncoming = 4

// serve accepts the streams that a peer opens, until the connection ends.
func (c *Client) serve(p *peer, conn *quic.Conn) {
	c.work.Go(func() { c.keepListening(p, conn) })
	for {
		stream, err := conn.AcceptStream(c.ctx)
		if err != nil {
			_ = conn.CloseWithError(0, "")
			return
		}
		c.work.Go(func() { c.accept(p, conn, stream) })
	}
}

// accept serves a stream that a peer has opened.
func (c *Client) accept(p *peer, conn *quic.Conn, stream *quic.Stream) {
	var kind [1]byte
	_ = stream.SetReadDeadline(time.Now().Add(c.cfg.RequestTimeout))
	// A builder answers no requests, so it accepts only announcements.
	if _, err := io.ReadFull(stream, kind[:]); err != nil || streamKind(kind[0]) != blockAnnouncement {
		reset(stream)
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	c.follow(p, conn, stream)
}

// reset aborts both directions of a stream.
func reset(stream *quic.Stream) {
	stream.CancelRead(0)
	stream.CancelWrite(0)
}

// request sends a request to a peer on a new stream, and reads the answer.
func (c *Client) request(ctx context.Context, p *peer, kind streamKind, messages [][]byte, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	conn, err := c.connect(ctx, p)
	if err != nil {
		return err
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return c.explain(ctx, p, conn, err)
	}
	// The stream is reset when the context ends. This has no effect if both halves are
	// closed.
	stop := context.AfterFunc(ctx, func() { reset(stream) })
	defer stop()
	// If read is nil, there is no answer to read.
	err = exchange(stream, kind, messages, read)
	p.mu.Lock()
	p.unresponsive = errors.Is(ctx.Err(), context.DeadlineExceeded)
	p.mu.Unlock()
	if err != nil {
		reset(stream)
		return c.explain(ctx, p, conn, err)
	}
	return nil
}

func exchange(stream *quic.Stream, kind streamKind, messages [][]byte, read func(io.Reader) error) error {
	if _, err := stream.Write([]byte{byte(kind)}); err != nil {
		return err
	}
	for _, m := range messages {
		if err := writeMessage(stream, m); err != nil {
			return err
		}
	}
	if err := stream.Close(); err != nil {
		return err
	}
	if read != nil {
		if err := read(stream); err != nil {
			return err
		}
	}
	var more [1]byte
	switch n, err := stream.Read(more[:]); {
	case n > 0:
		return fmt.Errorf("%w: data after the answer", ErrMalformed)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// explain converts the error of a stream to an error of this package.
func (c *Client) explain(ctx context.Context, p *peer, conn *quic.Conn, err error) error {
	var refused *quic.StreamError
	switch {
	case c.ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case ctx.Err() != nil:
		return fmt.Errorf("jamnps: no answer from %s: %w", p.Addr, ctx.Err())
	case errors.As(err, &refused) && refused.Remote:
		return fmt.Errorf("%w: %s, with code %d", ErrRefused, p.Addr, refused.ErrorCode)
	case errors.Is(err, ErrMalformed), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("jamnps: %s: %w", p.Addr, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s ended its answer early", ErrMalformed, p.Addr)
	}
	// The connection is broken, but its context shows that only later than the stream.
	// Drop it, so that the next attempt makes a new one.
	p.drop(conn)
	return fmt.Errorf("%w: %s: %w", ErrDisconnected, p.Addr, err)
}

// choose decides which peer receives a package for a core. Each attempt, counted from 1,
// should go to another guarantor of the core.
func (c *Client) choose(core jamq.CoreIndex, attempt int) *peer {
	if a := c.assigned.Load(); a != nil && c.cfg.Guarantors == nil {
		// The guarantors of the core come first, and then all other peers.
		order := a.Among(c.cfg.Peers, core, c.clock.SlotAt(time.Now()))
		for i := range c.peers {
			if other := (i + int(core)) % len(c.peers); !slices.Contains(order, other) {
				order = append(order, other)
			}
		}
		return c.peers[order[max(attempt-1, 0)%len(order)]]
	}
	if c.cfg.Guarantors != nil {
		// The host names the peers, and only these are tried.
		var serving []*peer
		for _, i := range c.cfg.Guarantors(core) {
			if i >= 0 && i < len(c.peers) {
				serving = append(serving, c.peers[i])
			}
		}
		if len(serving) > 0 {
			return serving[max(attempt-1, 0)%len(serving)]
		}
	}
	// The guarantors are unknown, so each attempt goes to the next of all peers.
	return c.peers[(max(attempt-1, 0)%len(c.peers)+int(core))%len(c.peers)]
}

package jip2server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit/codec"
)

// Config configures a [Server]. Start from [DefaultConfig].
type Config struct {
	// Chain is the simulated chain.
	Chain jamtest.Config
	// Version selects the encoding of packages. The default is 0.7.2.
	Version codec.Version
	// Journal, if not nil, records the inputs of the chain, so that the chain survives a
	// restart of the process.
	Journal Journal
	// Deviations are the differences from the text of JIP-2. The default is [Strict], and
	// [Profiles] contains the deviations of known nodes.
	Deviations
	// Observe, if not nil, is called after every slot. The server's lock is held during the
	// call, so Observe must not call the server.
	Observe func(jamtest.Update)
	// Fault, if not nil, is called for each call and returns the fault to inject. It runs
	// on the goroutine of the client's connection.
	Fault func(method string) Fault
	// MaxMessage is the maximum size of a received message in bytes, above 0. The default
	// is 64 MiB.
	MaxMessage int64
	// Logger receives messages for operators. Nil discards them.
	Logger *slog.Logger
}

// Fault is a fault that the server injects into one call. The zero value means no
// fault.
type Fault struct {
	// Hold, if not nil, delays this call and later calls on the connection until the
	// channel is closed or the connection ends.
	Hold <-chan struct{}
	// Cut breaks the connection instead of answering the call. With After, the server
	// carries out the call before it breaks the connection.
	Cut, After bool
	// Raw, if not nil, is sent instead of the answer.
	Raw []byte
	// Error, if not nil, is the answer.
	Error *Error
}

// Error is an error object of JSON-RPC, with its fields Code, Message and Data.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
	Data    any    `json:"data,omitempty"`
}

// These are the error codes of JIP-2 and JSON-RPC that the server uses.
const (
	codeOther       = 0
	codeUnavailable = 1
	codeNoProof     = 4
	codeNoLeaf      = 5
	codeUnsigned    = 6
	codeNotFinal    = 7
	codeParse       = -32700
	codeRequest     = -32600
	codeMethod      = -32601
	codeParams      = -32602
)

// DefaultConfig returns the configuration of a node that follows the text of JIP-2. The
// only faults are those in the chain's configuration.
func DefaultConfig(chain jamtest.Config) Config {
	return Config{Chain: chain, Deviations: Strict(), MaxMessage: 64 << 20}
}

// Server is a simulated JAM node. It is an http.Handler for WebSocket connections, and
// is safe for concurrent use.
type Server struct {
	cfg      Config
	log      *slog.Logger
	codec    *codec.Codec
	upgrader websocket.Upgrader

	mu    sync.Mutex
	chain *jamtest.Chain
	sent  map[jamq.PackageHash]int // submissions per package
	peers map[*peer]struct{}
	calls map[string]int
}

// New returns a server whose chain advances only through [Server.Step] or [Server.Run].
// The error wraps jamtest.ErrInvalidConfig or ErrJournal, or is that of codec.New or of
// the journal.
func New(cfg Config) (*Server, error) {
	if err := cfg.Chain.Validate(); err != nil {
		return nil, err
	}
	c, err := codec.New(cfg.Version, cfg.Chain.Spec)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, codec: c, sent: make(map[jamq.PackageHash]int),
		peers: make(map[*peer]struct{}), calls: make(map[string]int),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.openJournal(); err != nil {
		return nil, err
	}
	return s, nil
}

// Cut breaks all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		p.close()
	}
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers)
}

// Calls returns how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// maxQueued is the maximum number of messages that wait for a slow reader. If there are
// more, the server cuts the connection.
const maxQueued = 1024

// writeTime is the time limit for writing one message.
const writeTime = 10 * time.Second

// peer is one connection of a client.
type peer struct {
	server  *Server
	ws      *websocket.Conn
	out     chan []byte
	closed  chan struct{}
	closing sync.Once

	// Guarded by the server's lock.
	subs   map[uint64]*subscription
	lastID uint64

	// batch collects the answers to the current batch; it is nil outside a batch. Only the
	// goroutine of read uses it.
	batch *[]object
}

func (p *peer) close() {
	p.closing.Do(func() {
		close(p.closed)
		_ = p.ws.Close()
	})
}

// ServeHTTP serves one connection until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	ws.SetReadLimit(s.cfg.MaxMessage)
	p := &peer{server: s, ws: ws, out: make(chan []byte, maxQueued), closed: make(chan struct{}), subs: make(map[uint64]*subscription)}
	s.mu.Lock()
	s.peers[p] = struct{}{}
	s.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(p.write)
	p.read()
	p.close()
	writer.Wait()
	s.mu.Lock()
	delete(s.peers, p)
	s.mu.Unlock()
}

// write sends the queued messages until the connection ends.
func (p *peer) write() {
	defer p.close()
	for {
		select {
		case raw := <-p.out:
			if p.ws.SetWriteDeadline(time.Now().Add(writeTime)) != nil || p.ws.WriteMessage(websocket.TextMessage, raw) != nil {
				return
			}
		case <-p.closed:
			return
		}
	}
}

// send queues a message as JSON, or cuts the connection if too many messages wait.
func (p *peer) send(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		p.server.log.Error("answer cannot be written", "err", err)
		p.close()
		return
	}
	p.sendRaw(raw)
}

func (p *peer) sendRaw(raw []byte) {
	select {
	case p.out <- raw:
	case <-p.closed:
	default:
		p.server.log.Warn("connection cut: too slow")
		p.close()
	}
}

// handle answers one call, after it has injected the fault from Config.Fault. It
// returns false if the connection must end.
func (p *peer) handle(c *call) bool {
	s := p.server
	s.mu.Lock()
	s.calls[c.Method]++
	s.mu.Unlock()
	var f Fault
	if s.cfg.Fault != nil {
		f = s.cfg.Fault(c.Method)
	}
	if f.Hold != nil {
		select { // a closed connection is noticed afterwards
		case <-f.Hold:
		case <-p.closed:
			return false
		}
	}
	if f.Cut && !f.After {
		return false
	}
	if f.Error != nil {
		p.answer(c, nil, f.Error)
		return true
	}
	result, rpcError := s.dispatch(p, c)
	switch {
	case f.Cut:
		return false
	case f.Raw != nil:
		p.sendRaw(f.Raw)
	default:
		p.answer(c, result, rpcError)
		if p.batch == nil {
			p.begin()
		}
	}
	return true
}

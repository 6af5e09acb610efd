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

// Config says what the server is like. Begin with [DefaultConfig].
type Config struct {
	// Chain is the simulated chain.
	Chain jamtest.Config
	// Version is how packages are encoded; 0.7.2 by default.
	Version codec.Version
	// Journal, if not nil, lets the chain survive the process.
	Journal Journal
	// Missing are methods that this node does not have. UnknownCode is the code of its answer to them; -32601 by default, 0 with some nodes.
	Missing     []string
	UnknownCode int
	// KeepStates, if positive, is for how many blocks below the best one the node has states: the status of packages and the values of services.
	KeepStates int
	// StuckAtReported makes it one of those that never go on from Reported to Ready.
	StuckAtReported bool
	// Observe, if not nil, is told of every slot, under the server's lock: it must not call the server.
	Observe func(jamtest.Update)
	// Fault, if not nil, is asked at each call, from the goroutine of the connection.
	Fault func(method string) Fault
	// MaxMessage bounds a message that comes in, in bytes, positive; 64 MiB by default.
	MaxMessage int64
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// Fault is what goes wrong with one call. The zero value is nothing.
type Fault struct {
	// Hold, if not nil, keeps the connection's calls waiting until it is closed, or the connection ends.
	Hold <-chan struct{}
	// Cut breaks the connection instead of an answer; with After the call has been carried out by then.
	Cut, After bool
	// Raw, if not nil, is sent instead of the answer.
	Raw []byte
	// Error, if not nil, is the answer.
	Error *Error
}

// Error is an error object of JSON-RPC.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
	Data    any    `json:"data,omitempty"`
}

// Codes of JIP-2 and of JSON-RPC.
const (
	codeOther       = 0
	codeUnavailable = 1
	codeParse       = -32700
	codeRequest     = -32600
	codeMethod      = -32601
	codeParams      = -32602
)

// DefaultConfig returns a node that has everything and in which nothing goes wrong but what the chain's configuration says.
func DefaultConfig(chain jamtest.Config) Config {
	return Config{Chain: chain, UnknownCode: codeMethod, MaxMessage: 64 << 20}
}

// Server is a node. It is an http.Handler that speaks WebSocket; its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	log      *slog.Logger
	codec    *codec.Codec
	upgrader websocket.Upgrader

	mu    sync.Mutex
	chain *jamtest.Chain
	sent  map[jamq.PackageHash]int // how often each package was submitted
	peers map[*peer]struct{}
	calls map[string]int
}

// New returns a server whose chain stands still: see [Server.Run] and [Server.Step]. Errors wrap jamtest.ErrInvalidConfig, ErrJournal or are the
// journal's.
func New(cfg Config) (*Server, error) {
	if err := cfg.Chain.Validate(); err != nil {
		return nil, err
	}
	c, err := codec.New(cfg.Version, cfg.Chain.Spec)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, codec: c, sent: make(map[jamq.PackageHash]int), peers: make(map[*peer]struct{}), calls: make(map[string]int),
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

// Connections returns how many connections there are, Calls how often a method was called.
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

// maxQueued is how many messages may wait for a slow reader before it is cut off.
const maxQueued = 1024

// writeTime bounds the writing of one message.
const writeTime = 10 * time.Second

// peer is one connection.
type peer struct {
	server  *Server
	ws      *websocket.Conn
	out     chan []byte
	closed  chan struct{}
	closing sync.Once

	// Guarded by the server's lock.
	subs   map[uint64]*subscription
	fresh  *subscription // whose answer is not queued yet
	lastID uint64
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

// write sends what is queued.
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

// send queues a message. A reader that lets too many wait is cut off.
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

// call is a JSON-RPC request.
type call struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

// read answers calls, one after another.
func (p *peer) read() {
	for {
		_, raw, err := p.ws.ReadMessage()
		if err != nil {
			return
		}
		var c call
		if err := json.Unmarshal(raw, &c); err != nil {
			p.answer(json.RawMessage("null"), nil, &Error{Code: codeParse, Message: err.Error()})
			continue
		}
		if c.Version != "2.0" || c.Method == "" || c.ID == nil {
			p.answer(json.RawMessage("null"), nil, &Error{Code: codeRequest, Message: "not a request of JSON-RPC 2.0"})
			continue
		}
		if !p.handle(&c) {
			return
		}
	}
}

// handle answers one call and reports whether the connection goes on.
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
		select { // nobody reads meanwhile: that the other side has gone is noticed only afterwards
		case <-f.Hold:
		case <-p.closed:
			return false
		}
	}
	if f.Cut && !f.After {
		return false
	}
	if f.Error != nil {
		p.answer(c.ID, nil, f.Error)
		return true
	}
	result, rpcError := s.dispatch(p, c)
	switch {
	case f.Cut:
		return false
	case f.Raw != nil:
		p.sendRaw(f.Raw)
	default:
		p.answer(c.ID, result, rpcError)
		p.begin()
	}
	return true
}

func (p *peer) answer(id json.RawMessage, result any, e *Error) {
	if e != nil {
		p.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
		return
	}
	p.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

package bubble

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// latency is the time that a packet takes in a [LAN].
const latency = 500 * time.Microsecond

// LAN is a network of packet sockets in memory. It loses a packet only if no socket has
// its address, or if the buffer of the socket is full. Its zero value has no sockets. Its
// methods are safe for concurrent use.
type LAN struct {
	mu      sync.Mutex
	sockets map[string]*socket
	last    int // port
}

// socket is a net.PacketConn of a [LAN].
type socket struct {
	lan    *LAN
	addr   *net.UDPAddr
	in     chan packet
	closed chan struct{}

	mu       sync.Mutex
	expired  chan struct{} // closed when the read deadline is reached
	deadline *time.Timer
}

type packet struct {
	raw  []byte
	from net.Addr
	due  time.Time
}

// Listen opens a socket at an address, host:port, or at a new one if addr is "". The error
// is os.ErrExist if another socket has the address.
func (l *LAN) Listen(addr string) (net.PacketConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if addr == "" {
		l.last++
		addr = fmt.Sprintf("127.0.0.1:%d", l.last)
	}
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	if l.sockets[addr] != nil {
		return nil, os.ErrExist
	}
	s := &socket{
		lan: l, addr: at, in: make(chan packet, 1<<12), closed: make(chan struct{}),
		expired: make(chan struct{}),
	}
	if l.sockets == nil {
		l.sockets = make(map[string]*socket)
	}
	l.sockets[addr] = s
	return s, nil
}

func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	s.mu.Lock()
	expired := s.expired
	s.mu.Unlock()
	select {
	case p := <-s.in:
		time.Sleep(time.Until(p.due))
		return copy(b, p.raw), p.from, nil
	case <-expired:
		return 0, nil, os.ErrDeadlineExceeded
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	s.lan.mu.Lock()
	defer s.lan.mu.Unlock()
	if other := s.lan.sockets[to.String()]; other != nil {
		select {
		case other.in <- packet{append([]byte(nil), b...), s.addr, time.Now().Add(latency)}:
		default:
		}
	}
	return len(b), nil
}

func (s *socket) Close() error {
	s.lan.mu.Lock()
	defer s.lan.mu.Unlock()
	if s.lan.sockets[s.addr.String()] != s {
		return net.ErrClosed
	}
	delete(s.lan.sockets, s.addr.String())
	close(s.closed)
	return nil
}

func (s *socket) SetReadDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline != nil && !s.deadline.Stop() {
		<-s.expired
	}
	select {
	case <-s.expired:
		s.expired = make(chan struct{})
	default: // for the reads that run as well
	}
	s.deadline = nil
	if at.IsZero() {
		return nil
	}
	expired := s.expired
	s.deadline = time.AfterFunc(time.Until(at), func() { close(expired) })
	return nil
}

func (s *socket) LocalAddr() net.Addr                { return s.addr }
func (s *socket) SetDeadline(at time.Time) error     { return s.SetReadDeadline(at) }
func (s *socket) SetWriteDeadline(_ time.Time) error { return nil }

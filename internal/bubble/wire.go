package bubble

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Wire is a network in memory with one address, which a server can leave and take again.
// Its zero value has no server. Its methods are safe for concurrent use.
type Wire struct {
	mu     sync.Mutex
	server *acceptor
}

// acceptor accepts the connections of a [Wire] until it is closed.
type acceptor struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns the listener of a new server, which takes the place of the one before.
func (w *Wire) Listen() net.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = &acceptor{accept: make(chan net.Conn), closed: make(chan struct{})}
	return w.server
}

// Dial returns one end of a net.Pipe, whose other end the server accepts. It ignores the
// network and the address. Without a server the error is syscall.ECONNREFUSED.
func (w *Wire) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w.mu.Lock()
	server := w.server
	w.mu.Unlock()
	if server == nil {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	select {
	case server.accept <- there:
		return here, nil
	case <-server.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *acceptor) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *acceptor) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *acceptor) Addr() net.Addr { return &net.UnixAddr{Name: "wire", Net: "unix"} }

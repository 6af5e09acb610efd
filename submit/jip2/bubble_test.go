package jip2

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// bubble runs a test on virtual time, some slots after the beginning of JAM's Common
// Era. Clients reach their node over a wire.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour)))
		test(t)
	})
}

// await sleeps, in the bubble of a test, until ready is true.
func await(t *testing.T, ready func() bool, what ...any) {
	t.Helper()
	for began := time.Now(); !ready(); time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(began), time.Hour, what...)
	}
}

// update returns the next update of a subscription.
func update[T any](t *testing.T, s *Subscription[T]) T {
	t.Helper()
	select {
	case u, ok := <-s.Updates():
		require.True(t, ok, "closed")
		require.NoError(t, u.Err)
		return u.Value
	case <-time.After(24 * time.Hour):
		t.Fatal("no update")
		panic("unreachable")
	}
}

// wire is a network in memory with one address, which a server can leave and take again.
type wire struct {
	mu     sync.Mutex
	server *acceptor
}

// acceptor accepts the connections of a wire until it is closed.
type acceptor struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (w *wire) listen() net.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = &acceptor{accept: make(chan net.Conn), closed: make(chan struct{})}
	return w.server
}

// dial is for Config.Dial.
func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
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

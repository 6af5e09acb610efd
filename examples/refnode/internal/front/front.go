// Package front is for tests that end a server and start it again.
package front

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Front is an address that stays while the server behind it ends and starts again. Each
// server chooses its own port, so that no other program can have it. Its methods are safe
// for concurrent use.
type Front struct {
	listener net.Listener

	mu     sync.Mutex
	behind string
	cut    chan struct{} // closed by Cut
}

// New returns an address on the loopback interface. It leads to no server yet, and ends
// with the test.
func New(t testing.TB) *Front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &Front{listener: listener, cut: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.carry(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return f
}

// Addr returns the address, as host:port.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// LeadTo sets the address of the server behind, as host:port. If addr is "", as after the
// end of a server, each connection is closed at once: its port may belong to another
// program by now.
func (f *Front) LeadTo(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind = addr
}

// Cut leads to no server, and ends all connections, as a network does that fails.
func (f *Front) Cut() {
	f.LeadTo("")
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.cut)
	f.cut = make(chan struct{})
}

// carry copies in both directions until one side ends.
func (f *Front) carry(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	behind, cut := f.behind, f.cut
	f.mu.Unlock()
	if behind == "" {
		return
	}
	server, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-cut:
	}
}

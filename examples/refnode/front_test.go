package main

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// front is an address that stays while the process behind it is killed and started
// again. Each process chooses its own port, so that no other program can have it.
type front struct {
	listener net.Listener

	mu     sync.Mutex
	behind string // address of the process
}

func newFront(t *testing.T) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &front{listener: listener}
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

func (f *front) addr() string { return f.listener.Addr().String() }

// leadTo sets the address of the process behind.
func (f *front) leadTo(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind = addr
}

// carry copies in both directions until one side ends.
func (f *front) carry(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	behind := f.behind
	f.mu.Unlock()
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
	<-ended
}

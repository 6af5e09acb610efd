package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/examples/refnode/page"
)

// still is a source that never changes.
type still struct{}

func (still) Pool() live.Pool        { return live.Pool{Max: 1} }
func (still) Heads() live.Heads      { return live.Heads{} }
func (still) Txs(uint64) (int, bool) { return 0, false }
func (still) Lab() *live.Lab         { return nil }
func (still) Cluster() *live.Cluster { return nil }

// pipes is a listener whose connections do not buffer, so that a reader that does not read blocks
// the writer at once.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// show is a hub and its page behind a server, in virtual time.
type show struct {
	t       *testing.T
	hub     *live.Hub
	page    *page.Page
	pipes   *pipes
	stopHub func()
}

func inVirtualTime(t *testing.T, f func(t *testing.T, s *show)) {
	synctest.Test(t, func(t *testing.T) {
		spec := jamq.Tiny()
		spec.SlotDuration = 1000 * time.Hour
		hub := live.NewHub(live.Info{}, spec, 0, still{})
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { _ = hub.Run(ctx) })
		s := &show{t: t, hub: hub, page: page.New(hub, nil, nil), pipes: &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, stopHub: cancel}
		server := &http.Server{Handler: s.page}
		work.Go(func() { _ = server.Serve(s.pipes) }) // it returns when it is closed
		time.Sleep(time.Second)
		f(t, s)
		s.page.Close()
		cancel()
		require.NoError(t, server.Close())
		work.Wait()
	})
}

// look opens a stream.
func (s *show) look() (net.Conn, *bufio.Reader) {
	s.t.Helper()
	client, server := net.Pipe()
	s.pipes.conns <- server
	_, err := io.WriteString(client, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(s.t, err)
	response, err := http.ReadResponse(bufio.NewReader(client), nil)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	require.Equal(s.t, "text/event-stream", response.Header.Get("Content-Type"))
	return client, bufio.NewReader(response.Body)
}

// next reads events until one has data of the state.
func next(t *testing.T, r *bufio.Reader) map[string]json.RawMessage {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte("{"+data), &parts))
		return parts
	}
}

func TestStreamBeginsWithTheStateAndGoesOnWithChanges(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *show) {
		conn, r := s.look()
		defer conn.Close()
		require.Len(t, next(t, r), 9)
		s.hub.Note("broken")
		parts := next(t, r)
		require.Len(t, parts, 1)
		require.Contains(t, string(parts["events"]), "broken")
	})
}

// A slow reader receives the newest state next, and no state in between.
func TestSlowReaderIsToldTheNewest(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *show) {
		conn, r := s.look()
		defer conn.Close()
		next(t, r)
		for range 30 { // less than the time that a write may take
			s.hub.Note("something")
			time.Sleep(250 * time.Millisecond)
		}
		s.hub.Note("the last")
		time.Sleep(time.Second)
		told := 0
		for told = 1; !strings.Contains(string(next(t, r)["events"]), "the last"); told++ {
		}
		require.LessOrEqual(t, told, 2, "what it was being told, and the newest")
	})
}

// A reader who never comes again is let go.
func TestDeadReaderIsLetGo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *show) {
		conn, r := s.look()
		defer conn.Close()
		next(t, r)
		s.hub.Note("something")
		time.Sleep(11 * time.Second)
		s.hub.Note("more")
		time.Sleep(11 * time.Second)
		_, err := io.Copy(io.Discard, r)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the server has closed the connection")
	})
}

func TestStreamSaysThatItLives(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *show) {
		conn, r := s.look()
		defer conn.Close()
		next(t, r)
		began := time.Now()
		for line := ""; line != "event: alive\n"; {
			var err error
			line, err = r.ReadString('\n')
			require.NoError(t, err)
		}
		require.Equal(t, 10*time.Second, time.Since(began).Round(time.Second))
	})
}

func TestStreamsEnd(t *testing.T) {
	for name, end := range map[string]func(*show){
		"with the node":   func(s *show) { s.stopHub() },
		"with the server": func(s *show) { s.page.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *show) {
				conn, r := s.look()
				defer conn.Close()
				next(t, r)
				end(s)
				_, err := io.Copy(io.Discard, r)
				require.NoError(t, err, "the stream ends in good order")
			})
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *show) {
		var all []net.Conn
		for range 64 {
			conn, _ := s.look()
			all = append(all, conn)
		}
		client, server := net.Pipe()
		s.pipes.conns <- server
		_, err := io.WriteString(client, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		client.Close()
		for _, conn := range all {
			conn.Close()
		}
		synctest.Wait()
		conn, _ := s.look() // there is room again
		conn.Close()
	})
}

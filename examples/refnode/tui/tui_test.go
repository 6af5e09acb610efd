package tui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/live"
)

// source is a node that does nothing.
type source struct{}

func (source) Pool() live.Pool        { return live.Pool{Max: 1} }
func (source) Heads() live.Heads      { return live.Heads{} }
func (source) Txs(uint64) (int, bool) { return 0, false }
func (source) Lab() *live.Lab         { return nil }

// hub returns a hub that runs until the test ends or end is called.
func hub(t *testing.T, slot time.Duration) (h *live.Hub, end func()) {
	spec := jamq.Tiny()
	spec.SlotDuration = slot
	h = live.NewHub(live.Info{ChainID: "4359", JAM: "a chain for tests"}, spec, 0, source{})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { h.Run(ctx) })
	end = func() {
		cancel()
		work.Wait()
	}
	t.Cleanup(end)
	return h, end
}

// screen is a pseudo-terminal with its contents.
type screen struct {
	mu    sync.Mutex
	drawn bytes.Buffer
}

func (s *screen) follow(from io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		s.mu.Lock()
		s.drawn.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.drawn.String(), text)
}

// TestInATerminal runs the view in a pseudo-terminal, as people do.
func TestInATerminal(t *testing.T) {
	for name, quit := range map[string]func(t *testing.T, keys io.Writer, cancel, endNode func()){
		"q":            func(t *testing.T, keys io.Writer, _, _ func()) { press(t, keys, "q") },
		"Ctrl-C":       func(t *testing.T, keys io.Writer, _, _ func()) { press(t, keys, "\x03") },
		"the node":     func(_ *testing.T, _ io.Writer, _, endNode func()) { endNode() },
		"the context":  func(_ *testing.T, _ io.Writer, cancel, _ func()) { cancel() },
		"q, not other": func(t *testing.T, keys io.Writer, _, _ func()) { press(t, keys, "xyq") },
	} {
		t.Run(name, func(t *testing.T) {
			terminal, tty, err := pty.Open()
			require.NoError(t, err)
			defer terminal.Close()
			require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 30, Cols: 100}))
			require.True(t, IsTerminal(tty))
			h, endNode := hub(t, 200*time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &screen{}
			followed := make(chan struct{})
			go func() { defer close(followed); s.follow(terminal) }()
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, h, tty, tty) }()
			require.Eventually(t, func() bool { return s.shows("a chain for tests") && s.shows("No rollup block is on its way") }, 10*time.Second, 5*time.Millisecond)
			h.Note("something happened")
			require.Eventually(t, func() bool { return s.shows("something happened") }, 10*time.Second, 5*time.Millisecond)
			quit(t, terminal, cancel, endNode)
			require.NoError(t, <-ended)
			require.Eventually(t, func() bool { return s.shows("\x1b[?1049l") }, 10*time.Second, 5*time.Millisecond, "the terminal is given back")
			require.NoError(t, tty.Close())
			<-followed
		})
	}
}

func press(t *testing.T, keys io.Writer, what string) {
	_, err := io.WriteString(keys, what)
	require.NoError(t, err)
}

// If the output is not a terminal, Run prints a line at once, and then one per lineTime at most.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		time.Sleep(time.Until(jamq.CommonEra().Add(time.Hour))) // virtual time begins before it
		h, end := hub(t, time.Second)
		done := make(chan error, 1)
		go func() { done <- Run(t.Context(), h, nil, &out) }()
		time.Sleep(time.Minute + time.Second)
		end()
		require.NoError(t, <-done)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.InDelta(t, 13, len(lines), 1, "every five seconds")
		require.Contains(t, lines[0], "slot 3600 | users 0")
	})
}

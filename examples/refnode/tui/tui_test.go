package tui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/internal/wait"
)

// source is a node that does nothing.
type source struct{}

func (source) Pool() live.Pool        { return live.Pool{Max: 1} }
func (source) Heads() live.Heads      { return live.Heads{} }
func (source) Txs(uint64) (int, bool) { return 0, false }
func (source) Lab() *live.Lab         { return nil }
func (source) Cluster() *live.Cluster { return nil }

// hub returns a hub that runs until the test ends or end is called.
func hub(t *testing.T, slot time.Duration) (h *live.Hub, end func()) {
	spec := jamq.Tiny()
	spec.SlotDuration = slot
	h = live.NewHub(live.Info{ChainID: "4359", JAM: "a chain for tests"}, spec, 0, source{})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = h.Run(ctx) })
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

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drawn.String()
}

func (s *screen) shows(text string) bool {
	return strings.Contains(s.String(), text)
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
			wait.Until(t, func() bool { return s.shows("a chain for tests") && s.shows("No rollup block is on its way") }, "the view: %s", s)
			h.Note("something happened")
			wait.Until(t, func() bool { return s.shows("something happened") }, "the event: %s", s)
			quit(t, terminal, cancel, endNode)
			require.NoError(t, <-ended)
			wait.Until(t, func() bool { return s.shows("\x1b[?1049l") }, "the terminal is given back: %s", s)
			require.NoError(t, tty.Close())
			<-followed
		})
	}
}

func press(t *testing.T, keys io.Writer, what string) {
	_, err := io.WriteString(keys, what)
	require.NoError(t, err)
}

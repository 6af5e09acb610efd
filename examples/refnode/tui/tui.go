package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"github.com/jamq/jamq/examples/refnode/live"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// Run shows the node until ctx or the hub ends, or the user quits with q, Esc
// or Ctrl-C. It returns nil in each of these cases. If out is not a terminal,
// Run prints a line every few seconds instead.
func Run(ctx context.Context, hub *live.Hub, in io.Reader, out io.Writer) error {
	if !IsTerminal(out) {
		return lines(ctx, hub, out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := model{ctx: ctx, hub: hub, width: 80, height: 24}
	m.snapshot, m.changed = hub.Snapshot()
	// The model ends the program when ctx ends. Do not pass ctx to bubbletea: it
	// would treat the end of ctx as a kill and return while it still reads from in,
	// which the caller may close then.
	_, err := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("tui: %w", err)
	}
	return nil
}

// model implements tea.Model.
type model struct {
	ctx           context.Context
	hub           *live.Hub
	snapshot      *live.Snapshot
	changed       <-chan struct{}
	width, height int
}

// moved means that there is a newer snapshot; ended means that there will be
// none.
type (
	moved struct{}
	ended struct{}
)

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.wait }

// wait waits for a newer snapshot.
func (m model) wait() tea.Msg {
	select {
	case <-m.changed:
		return moved{}
	case <-m.hub.Done():
	case <-m.ctx.Done():
	}
	return ended{}
}

// Update implements tea.Model.
func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := message.(type) {
	case moved:
		m.snapshot, m.changed = m.hub.Snapshot()
		return m, m.wait
	case ended:
		return m, tea.Quit
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "ctrl+c", "esc":
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(Render(&m.snapshot.State, m.width, m.height, time.Local))
	v.AltScreen = true
	v.WindowTitle = "jamq"
	return v
}

// lineTime is the minimum time between two lines.
const lineTime = 5 * time.Second

// lines prints a line when the state has changed, at most every lineTime.
func lines(ctx context.Context, hub *live.Hub, out io.Writer) error {
	last := ""
	for {
		snapshot, changed := hub.Snapshot()
		line := Line(&snapshot.State)
		if line != last {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return fmt.Errorf("tui: %w", err)
			}
			last = line
			select {
			case <-time.After(lineTime):
			case <-hub.Done():
				return nil
			case <-ctx.Done():
				return nil
			}
			continue // there may be a newer snapshot
		}
		select {
		case <-changed:
		case <-hub.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

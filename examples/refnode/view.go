package main

import (
	"context"
	"io"
	"os"

	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/examples/refnode/tui"
)

// view is the terminal view of a node that runs. The zero value shows nothing.
type view struct {
	quit   chan error // gets the reason why it ended, nil if the user or the node did
	cancel context.CancelFunc
}

// show begins to show a hub on stdout.
func show(ctx context.Context, hub *live.Hub, stdout io.Writer) *view {
	ctx, cancel := context.WithCancel(ctx)
	v := &view{quit: make(chan error, 1), cancel: cancel}
	go func() { v.quit <- tui.Run(ctx, hub, os.Stdin, stdout) }()
	return v
}

// end gives the terminal back and waits until that is done. It may be called again.
func (v *view) end() error {
	if v.cancel == nil {
		return nil
	}
	v.cancel()
	err := <-v.quit
	v.quit <- err
	return err
}

package main

import (
	"context"
	"io"
	"os"

	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/examples/refnode/tui"
)

// show shows a hub on stdout if wanted is true. When ctx ends or the user
// quits, done receives nil; if there is no view because of an error, done
// receives the error. The terminal is restored before that. end ends the view
// and waits until the terminal is restored.
func show(ctx context.Context, hub *live.Hub, wanted bool, stdout io.Writer) (done chan error, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done, finished := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(finished)
		if wanted {
			done <- tui.Run(ctx, hub, os.Stdin, stdout)
			return
		}
		<-ctx.Done()
		done <- nil
	}()
	return done, func() {
		cancel()
		<-finished
	}
}

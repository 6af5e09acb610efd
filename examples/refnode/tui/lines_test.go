package tui

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

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

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllFiveBecomeFinal(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, new(mortal)))
	require.Equal(t, 5, strings.Count(out.String(), "accumulated → finalized"), out.String())
}

// TestDiesAtAnyRecord: if the process dies at any record, before it is in the log or after, each
// word is accumulated once, in order.
func TestDiesAtAnyRecord(t *testing.T) {
	t.Run("before", func(t *testing.T) { dieAtEach(t, false) })
	t.Run("after", func(t *testing.T) { dieAtEach(t, true) })
}

func dieAtEach(t *testing.T, written bool) {
	for left := 1; ; left++ {
		log := &mortal{left: left, written: written}
		chain, err := play(io.Discard, log)
		require.NoError(t, err)
		inbox, err := chain.Inbox(service, chain.Best().Hash)
		require.NoError(t, err)
		var words []string
		for _, p := range inbox {
			words = append(words, string(p.Payload))
		}
		require.Equal(t, "[one two three four five]", fmt.Sprint(words), "it died at record %d", left)
		if log.left > 0 {
			require.Greater(t, left, 50)
			return // it did not die
		}
	}
}

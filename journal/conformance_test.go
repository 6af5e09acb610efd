package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/journal/journaltest"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	journaltest.Run(t, func() journal.Journal {
		j, err := journal.Open(path)
		require.NoError(t, err)
		require.Zero(t, j.Cut())
		return j
	})
}

func TestMemory(t *testing.T) {
	m := new(journal.Memory)
	journaltest.Run(t, func() journal.Journal {
		m.Reopen()
		return m
	})
}

func TestShared(t *testing.T) {
	shared := new(journal.Shared)
	journaltest.RunShared(t, func() journaltest.Shared { return shared.Join() })
	shared = new(journal.Shared)
	journaltest.Run(t, func() journal.Journal {
		m := shared.Join()
		require.NoError(t, m.Lead(t.Context(), func([]byte) error { return nil }, func() error { return nil }))
		return m
	})
}

// A member that has lost the lead writes nothing more.
func TestDepose(t *testing.T) {
	shared := new(journal.Shared)
	none := func() error { return nil }
	first, second := shared.Join(), shared.Join()
	for _, m := range []*journal.Member{first, second} {
		require.NoError(t, m.Lead(t.Context(), func([]byte) error { return nil }, none))
		require.NoError(t, m.Append([]byte("written")))
		shared.Depose()
	}
	require.ErrorIs(t, first.Append([]byte("lost")), journal.ErrFenced)
	require.ErrorIs(t, first.Replace(), journal.ErrFenced)
	n := 0
	require.NoError(t, first.Replay(func([]byte) error { n++; return nil }))
	require.Equal(t, 2, n)
	require.NoError(t, first.Lead(t.Context(), func([]byte) error { return nil }, none), "it can lead again")
}

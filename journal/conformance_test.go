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

package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder/logtest"
	"github.com/jamq/jamq/submit/journal"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	logtest.Run(t, func() journal.Journal {
		j, err := journal.Open(path)
		require.NoError(t, err)
		require.Zero(t, j.Cut())
		return j
	})
}

func TestMemory(t *testing.T) {
	m := new(journal.Memory)
	logtest.Run(t, func() journal.Journal {
		m.Reopen()
		return m
	})
}

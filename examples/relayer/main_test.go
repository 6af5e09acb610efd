package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

func TestCommand(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		args []string
		code int
		says string
	}{
		"help":             {t.Context(), []string{"-h"}, 0, "-datadir"},
		"an unknown flag":  {t.Context(), []string{"-x"}, 2, "-x"},
		"an argument":      {t.Context(), []string{"x"}, 2, `unexpected argument "x"`},
		"nothing to send":  {t.Context(), []string{"-n", "0"}, 2, "-n is 0"},
		"no time":          {t.Context(), []string{"-blocks", "0s"}, 2, "-blocks is 0s"},
		"no key":           {t.Context(), []string{"-keyfile", t.TempDir()}, 1, "is a directory"},
		"with metrics":     {t.Context(), []string{"-n", "3", "-blocks", "20ms", "-metrics", "127.0.0.1:0"}, 0, "metrics at http://127.0.0.1:"},
		"no such address":  {t.Context(), []string{"-n", "3", "-metrics", "x"}, 1, "-metrics: "},
		"a few":            {t.Context(), []string{"-n", "3", "-blocks", "20ms"}, 0, "final           3"},
		"stopped too soon": {stopped, []string{"-n", "3"}, 1, "stopped before all transfers were over"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			require.Equal(t, c.code, command(c.ctx, c.args, &out, &log), log.String())
			require.Contains(t, out.String()+log.String(), c.says)
		})
	}
}

// An account without funds is named at once, because the transfers wait for them without end.
func TestAccountWithoutFunds(t *testing.T) {
	c := newTestChain(t)
	key, err := crypto.GenerateKey()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, crypto.SaveECDSA(file, key))
	lines, log := io.Pipe()
	defer log.Close()
	ctx, stop := context.WithCancel(wait.Context(t))
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- command(ctx, []string{"-n", "1", "-rpc", c.url, "-keyfile", file}, io.Discard, log) }()
	logged := bufio.NewReader(lines)
	first, err := logged.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, first, "funds since")
	require.Contains(t, first, "has 0")
	go func() { _, _ = io.Copy(io.Discard, logged) }() // ends with the pipe
	stop()
	require.Equal(t, 1, <-ended)
}

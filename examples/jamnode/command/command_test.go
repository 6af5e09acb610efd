package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/submit/jip2"
)

// until runs the command, and f with its URL, and returns the exit status after f.
func until(t *testing.T, f func(url string), args ...string) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reading, writing := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- Run(ctx, append([]string{"-listen", "127.0.0.1:0", "-slot", "20ms"}, args...), strings.NewReader(""), writing, writing)
		_ = writing.Close()
	}()
	var out bytes.Buffer
	line := make([]byte, 4096)
	for !strings.Contains(out.String(), "(JIP-2)") {
		n, err := reading.Read(line)
		require.NoError(t, err, "%s", &out)
		out.Write(line[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, reading) }()
	f(regexp.MustCompile(`ws://\S+`).FindString(out.String()))
	cancel()
	return <-exit
}

// With a data directory the chain continues at the same block, and other flags than
// before are refused: the same journal would give another chain.
func TestServesAndRestarts(t *testing.T) {
	dir := t.TempDir()
	var before jip2.BlockDescriptor
	follow := func(url string) (newest jip2.BlockDescriptor) {
		client, err := jip2.Open(jip2.DefaultConfig(url))
		require.NoError(t, err)
		defer client.Close()
		best, err := client.SubscribeBestBlock(t.Context())
		require.NoError(t, err)
		for range 5 {
			newest = wait.Receive(t, best.Updates(), "the next block").Value
		}
		if before.Slot > 0 {
			at := newest
			for at.Slot > before.Slot {
				at, err = client.Parent(t.Context(), [32]byte(at.HeaderHash))
				require.NoError(t, err)
			}
			require.Equal(t, before, at, "the chain of before")
		}
		return newest
	}
	require.Zero(t, until(t, func(url string) { before = follow(url) }, "-datadir", dir))
	require.Zero(t, until(t, func(url string) { follow(url) }, "-datadir", dir))
	genesis := filepath.Join(t.TempDir(), "genesis.json")
	state := strings.Repeat("00", 31)
	require.NoError(t, os.WriteFile(genesis, []byte(`{"genesis_state":{"`+state+`":"01"}}`), 0o600))
	for _, other := range [][]string{{"-genesis", genesis}, {"-seed", "2"}, {"-loss", "0.1"}, {"-skip", "0.1"}, {"-fork", "0.1"}, {"-lag", "4"}, {"-slot", "30ms"}, {"-spec", "full"}} {
		var out bytes.Buffer
		args := append([]string{"-listen", "127.0.0.1:0", "-slot", "20ms", "-datadir", dir}, other...)
		require.Equal(t, exitFailed, Run(t.Context(), args, strings.NewReader(""), io.Discard, &out), "the chain was made without %v", other)
		require.Contains(t, out.String(), "another configuration", "%v", other)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"-spec", "huge"}, {"-slot", "0s"}, {"-skip", "1"}, {"-loss", "2"}, {"-fork", "-1"}, {"-lag", "-1"}, {"extra"}, {"-nonsense"}, {"-genesis", "nowhere"}, {"-genesis", "."}} {
		var out bytes.Buffer
		require.Equal(t, exitUsage, Run(t.Context(), args, strings.NewReader(""), &out, &out), "%v", args)
		require.NotEmpty(t, out.String())
	}
}

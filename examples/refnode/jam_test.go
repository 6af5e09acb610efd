package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/internal/front"
	"github.com/jamq/jamq/internal/wait"
)

// jamNode is examples/jamnode as a process. It keeps its address and its data
// directory when it is started again.
type jamNode struct {
	t       testing.TB
	args    []string
	url     string
	front   *front.Front
	process *exec.Cmd
	stdin   io.WriteCloser
	out     *lockedBuffer // of the process that was started last
}

// genesisFile writes what the node prints for its service in a JAM chain's genesis state.
func genesisFile(t testing.TB, args ...string) string {
	t.Helper()
	var out, errors bytes.Buffer
	require.Zero(t, run(t.Context(), append([]string{"-genesis"}, args...), &out, &errors), "%s", &errors)
	name := filepath.Join(t.TempDir(), "genesis.json")
	require.NoError(t, os.WriteFile(name, out.Bytes(), 0o600))
	return name
}

// keyFile writes a new builder's key.
func keyFile(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "builder.pem")
	require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return name
}

// startJAMNode starts a JAM node on whose chain the rollup is installed as the default service and
// as service 7.
func startJAMNode(t testing.TB, args ...string) *jamNode {
	t.Helper()
	n := &jamNode{t: t, front: front.New(t)}
	n.url = "ws://" + n.front.Addr()
	var version []string
	if i := slices.Index(args, "-gp"); i >= 0 {
		version = args[i : i+2]
	}
	n.args = append([]string{"-listen", "127.0.0.1:0", "-datadir", t.TempDir(),
		"-genesis", genesisFile(t, version...), "-genesis", genesisFile(t, append([]string{"-service", "7"}, version...)...)}, args...)
	n.start()
	t.Cleanup(n.kill)
	return n
}

func (n *jamNode) start() {
	n.t.Helper()
	n.process, n.out = program(n.t, "jamnode", n.args...), new(lockedBuffer)
	n.process.Stdout, n.process.Stderr = n.out, n.out
	var err error
	n.stdin, err = n.process.StdinPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, n.process.Start())
	wait.Until(n.t, func() bool {
		_, after, _ := strings.Cut(n.out.String(), "Listening on ws://")
		addr, _, complete := strings.Cut(after, " ")
		if complete {
			n.front.LeadTo(addr)
		}
		return complete
	}, "the JAM node listens: %s", n.out)
}

// awaitBlocks waits until the best block has a number of ancestors.
func (n *jamNode) awaitBlocks(ancestors int) {
	n.t.Helper()
	c, err := rpc.DialContext(n.t.Context(), n.url)
	require.NoError(n.t, err)
	defer c.Close()
	wait.Until(n.t, func() bool {
		var block struct {
			Hash string `json:"header_hash"`
		}
		err := c.CallContext(n.t.Context(), &block, "bestBlock")
		for i := 0; i < ancestors && err == nil; i++ {
			err = c.CallContext(n.t.Context(), &block, "parent", block.Hash)
		}
		return err == nil
	}, "the best block has %d ancestors", ancestors)
}

// command changes the faults of a node that was started with -stdin.
func (n *jamNode) command(line string) {
	n.t.Helper()
	before := n.out.Len()
	_, err := io.WriteString(n.stdin, line+"\n")
	require.NoError(n.t, err)
	wait.Until(n.t, func() bool { return strings.Contains(n.out.after(before), "ok: "+line+"\n") }, "%s: %s", line, n.out)
}

// kill ends the process as a crash does.
func (n *jamNode) kill() {
	n.front.LeadTo("")
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

// Two processes, one builder, one chain: the demonstration over JIP-2, with everything checked by
// the RPC.
func TestDemoOnAJAMNode(t *testing.T) {
	t.Parallel()
	jam := startJAMNode(t, "-slot", "60ms", "-loss", "0.2", "-skip", "0.1", "-fork", "0.1")
	var out lockedBuffer
	dir := filepath.Join(t.TempDir(), "data")
	require.Zero(t, run(t.Context(), []string{"-demo", "31", "-jam", jam.url, "-datadir", dir}, &out, &out), "%s", &out)
	require.Regexp(t, `31/31 transactions finalized in \d+ bundles; 0 lost; 0 executed twice; canonical root 0x[0-9a-f]{64}\n$`, out.String())

	// Its blocks are final for its service only, and on this chain only.
	for _, other := range [][]string{{"-jam", jam.url, "-service", "7"}, {"-slot", "60ms"}} {
		out = lockedBuffer{}
		require.Equal(t, exitFailed, run(t.Context(), append([]string{"-demo", "1", "-datadir", dir}, other...), &out, &out))
		require.Contains(t, out.String(), "used with other settings")
	}

	// Its service is in use now, by blocks that another node cannot know.
	out = lockedBuffer{}
	require.Equal(t, exitFailed, run(t.Context(), []string{"-demo", "1", "-jam", jam.url}, &out, &out))
	require.Contains(t, out.String(), "use a different service")

	// The services take the packages of one builder.
	out = lockedBuffer{}
	require.Equal(t, exitFailed, run(t.Context(), []string{"-demo", "1", "-jam", jam.url, "-service", "7", "-builderkey", keyFile(t)}, &out, &out))
	require.Contains(t, out.String(), "use its builder's key")
	require.Zero(t, run(t.Context(), []string{"-demo", "3", "-jam", jam.url, "-service", "7"}, &out, &out), "%s", &out)

	// Other services are not installed.
	out = lockedBuffer{}
	require.Equal(t, exitFailed, run(t.Context(), []string{"-demo", "1", "-jam", jam.url, "-service", "8"}, &out, &out))
	require.Contains(t, out.String(), "service: not installed")
}

// A chain of Gray Paper 0.8.0, and a node for it, with a JAM node whose RPC has all deviations that
// a builder can live with.
func TestDemoOnNewerGrayPaper(t *testing.T) {
	t.Parallel()
	jam := startJAMNode(t, "-slot", "60ms", "-gp", "0.8.0", "-profile", "tolerable")
	var out lockedBuffer
	require.Zero(t, run(t.Context(), []string{"-demo", "5", "-gp", "0.8.0", "-jam", jam.url}, &out, &out), "%s", &out)
	require.Contains(t, out.String(), "5/5 transactions finalized")
}

// The node names the methods that a JAM node lacks and does not start.
func TestJAMNodeLacksMethods(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"typeberry", "jamneration"} {
		jam := startJAMNode(t, "-slot", "60ms", "-profile", profile)
		jam.awaitBlocks(3) // the BEEFY root of the first two may be zero
		var out lockedBuffer
		require.Equal(t, exitFailed, run(t.Context(), []string{"-demo", "1", "-jam", jam.url}, &out, &out))
		require.Contains(t, out.String(), "not supported by the node: beefyRoot, workPackageStatus")
	}
}

// The chain's process is killed while transactions are on their way, and comes back. Nothing is
// lost, and nothing executed twice.
func TestJAMNodeIsKilled(t *testing.T) {
	t.Parallel()
	jam := startJAMNode(t, "-slot", "80ms", "-loss", "0.1")
	node := launch(t, "-jam", jam.url)
	c := dial(t, node.url)
	me := accounts(t)[5]
	nonce := uint64(0)
	entered := func(state bundlequeue.State) uint64 {
		var status rpcapi.QueueStatus
		require.NoError(t, c.Client().CallContext(t.Context(), &status, "jam_queueStatus"))
		return status.Transitions[state.String()]
	}
	sendSix := func() {
		for range 6 {
			send(t, c, me, transfer(nonce, common.Address{0xf5}))
			nonce++
		}
	}
	// Each kill meets a package in another state. A package whose Send was answered late is
	// never seen as guaranteed.
	for _, state := range []bundlequeue.State{bundlequeue.Submitted, bundlequeue.Guaranteed, bundlequeue.Accumulated} {
		before, final := entered(state), entered(bundlequeue.Finalized)
		sendSix()
		wait.Until(t, func() bool {
			return entered(state) > before || entered(bundlequeue.Finalized) > final
		}, "a package becomes %v", state)
		jam.kill()
		jam.start()
	}
	sendSix()
	last := send(t, c, me, transfer(nonce, common.Address{0xf5}))
	waitFor(t, c, last.Hash(), rpc.FinalizedBlockNumber)
	balance, err := c.BalanceAt(t.Context(), common.Address{0xf5}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 7*(nonce+1), balance.Uint64())
	var status struct {
		Service struct{ Duplicates, Gaps []uint64 } `json:"service"`
	}
	require.NoError(t, c.Client().CallContext(t.Context(), &status, "jam_queueStatus"))
	require.Empty(t, status.Service.Duplicates)
	require.Empty(t, status.Service.Gaps)
	require.Zero(t, node.end(t))
}

// TestJAMUsage: values that do not fit a JAM node are refused, with the reason.
func TestJAMUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-jam", "http://127.0.0.1:1"}, exitFailed, "ws"},
		{[]string{"-jam", "ws://127.0.0.1:1", "-slot", "1s"}, exitUsage, "-slot configures the embedded chain"},
		{[]string{"-service", fmt.Sprint(uint64(1) << 40)}, exitUsage, "-service is 1099511627776"},
	} {
		var out lockedBuffer
		require.Equal(t, tt.code, run(t.Context(), tt.args, &out, &out), "%v", tt.args)
		require.Contains(t, out.String(), tt.want)
	}
}

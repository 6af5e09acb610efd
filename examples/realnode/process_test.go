package realnode

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/submit/jamnps"
)

// realNode is the node as a process. It keeps its ports and its database when it is started again.
type realNode struct {
	t        *testing.T
	dir      string
	tcp, udp string
	peer     jamnps.Peer
	process  *exec.Cmd
	out      *output
}

// output is the text of a process that is read while the process writes.
type output struct {
	mu  sync.Mutex
	raw bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raw.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raw.String()
}

// find returns what the pattern's group matches, or "".
func (o *output) find(pattern string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(o.String()); found != nil {
		return found[1]
	}
	return ""
}

func startRealNode(t *testing.T) *realNode {
	t.Helper()
	n := &realNode{t: t, dir: t.TempDir()}
	n.start()
	t.Cleanup(n.kill)
	name := n.out.find(`Peer id: \*\* (e[a-z2-7]{52})@`)
	peer, err := jamnps.ParsePeer(name + "@127.0.0.1:" + n.udp)
	require.NoError(t, err)
	n.peer = peer
	return n
}

func (n *realNode) start() {
	n.t.Helper()
	node, err := filepath.Abs("node")
	require.NoError(n.t, err)
	n.process, n.out = exec.Command("node", filepath.Join(node, "node_modules/@typeberry/jam/index.js"),
		"--name=realnode", "--config=dev", fmt.Sprintf("--config=.database_base_path=%q", filepath.Join(n.dir, "db")),
		`--config=.state_backend="lmdb"`, "dev", "all"), new(output)
	n.process.Dir = n.dir
	n.process.Env = append(os.Environ(), "NODE_OPTIONS=--require "+filepath.Join(node, "preload.cjs"))
	if n.tcp != "" {
		n.process.Env = append(n.process.Env, "REALNODE_TCP="+n.tcp, "REALNODE_UDP="+n.udp)
	}
	n.process.Stdout, n.process.Stderr = n.out, n.out
	require.NoError(n.t, n.process.Start())
	wait.Until(n.t, func() bool {
		n.tcp, n.udp = n.out.find(`preload: tcp (\d+)`), n.out.find(`preload: udp (\d+)`)
		return n.tcp != "" && n.udp != "" && n.out.find(`Peer id: \*\* (e)`) != ""
	}, "the node listens: %s", n.out)
}

// kill ends the process as a crash does.
func (n *realNode) kill() {
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

func (n *realNode) url() string { return "ws://127.0.0.1:" + n.tcp }

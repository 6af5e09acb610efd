package tidy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var compile = flag.Bool("compile", false, "measure how long a package compiles that imports a host with a builder")

// TestCompileTime: a package that imports a host with a *builder.Builder in an exported struct
// compiles almost as fast as with an empty struct. Generic code is compiled again in each package
// that imports it, so that the engine of a builder has no type parameter.
func TestCompileTime(t *testing.T) {
	if !*compile {
		t.Skip("without -compile")
	}
	const most = 300 * time.Millisecond
	empty := compileTime(t, "type Node struct{ B *struct{} }")
	full := compileTime(t, "import \"github.com/jamq/jamq/builder\"\n\ntype Body struct{ Words []string }\n\ntype Node struct{ B *builder.Builder[*Body] }")
	t.Logf("processor time: %v with a builder, %v with an empty struct", full, empty)
	require.Less(t, full-empty, most)
}

// compileTime returns the processor time for a package that imports a host with the given
// declarations, the least of three compilations.
func compileTime(t *testing.T, declarations string) time.Duration {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	least := time.Hour
	for i := range 3 {
		host := write("host.go", "package host\n\n"+declarations+"\n")
		user := write("user.go", fmt.Sprintf("package user\n\nimport \"github.com/jamq/jamq/internal/compiled/host\"\n\n// %d of %s\nfunc IsNil(n *host.Node) bool { return n.B == nil }\n", i, dir))
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
			filepath.Join(root, "internal/compiled/host/host.go"): host,
			filepath.Join(root, "internal/compiled/user/user.go"): user,
		}})
		require.NoError(t, err)
		graph := filepath.Join(dir, "graph.json")
		build := exec.Command("go", "build", "-overlay", write("overlay.json", string(overlay)), "-debug-actiongraph", graph, "./internal/compiled/user")
		build.Dir = root
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		least = min(least, userTime(t, graph))
	}
	return least
}

// userTime reads the processor time for the package from the action graph of the go command.
func userTime(t *testing.T, graph string) time.Duration {
	raw, err := os.ReadFile(graph)
	require.NoError(t, err)
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	require.NoError(t, json.Unmarshal(raw, &actions))
	for _, a := range actions {
		if a.Mode == "build" && a.Package == "github.com/jamq/jamq/internal/compiled/user" && a.CmdUser+a.CmdSys > 0 {
			return a.CmdUser + a.CmdSys
		}
	}
	require.FailNow(t, "the package was not compiled", "%+v", actions)
	return 0
}

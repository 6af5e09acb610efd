package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/jamq/jamq"

// mayImport holds, for each package of this repository, the others that it may
// depend on, directly or not. A package that is not listed fails the test.
var mayImport = map[string][]string{
	"":                 {},
	"anchor":           {""},
	"anchor/chainview": {"", "anchor"},
	"canonical":        {""},
	"canonical/proof":  {"", "canonical/statetrie", "submit/codec"}, // the outputs in C(16)
	"canonical/proof/jip2proof": {"", "anchor", "anchor/chainview", "bundlequeue", "canonical/proof", "canonical/statetrie",
		"submit", "submit/codec", "submit/jip2"},
	"canonical/statetrie": {""},
	"bundlequeue":         {"", "anchor", "anchor/chainview"},
	"ratelimit":           {},
	"service":             {"", "canonical/proof", "canonical/statetrie", "service/internal/asm", "service/internal/pvm", "submit/codec"},
	"statedb":             {"", "statedb/ubt"},
	"statedb/ubt":         {},
	"txpool":              {},
	"builder":             {"", "anchor", "anchor/chainview", "bundlequeue", "canonical", "submit", "journal"},
	"builder/buildertest": {"", "anchor", "anchor/chainview", "builder", "builder/simnet", "bundlequeue", "canonical", "canonical/proof", "canonical/statetrie", "jamtest",
		"service", "service/internal/asm", "service/internal/pvm", "submit", "submit/codec", "journal"},
	"builder/simnet": {"", "anchor", "anchor/chainview", "builder", "bundlequeue", "canonical", "canonical/proof", "canonical/statetrie", "jamtest",
		"service", "service/internal/asm", "service/internal/pvm", "submit", "journal", "submit/codec"},
	"builder/jip2net":      {"", "anchor", "anchor/chainview", "builder", "bundlequeue", "canonical", "canonical/statetrie", "submit", "journal", "submit/codec", "submit/jip2"},
	"builder/pglog":        {"journal"},
	"journal/journaltest":  {"journal"},
	"builder/mempool":      {"txpool"},
	"bundlequeue/told":     {"", "anchor", "anchor/chainview", "bundlequeue"},
	"submit":               {"", "anchor"},
	"submit/codec":         {""},
	"journal":              {},
	"submit/jip2":          {"", "anchor", "anchor/chainview", "bundlequeue", "canonical/statetrie", "submit"},
	"eoa":                  {"internal/wire", "eoa/internal/account"},
	"eoa/internal/account": {},
	"eoa/blobs":            {"eoa/internal/account"},
	"eoa/internal/far":     {"eoa", "eoa/internal/account"},
	"eoa/kvstore":          {"eoa", "eoa/internal/account"},
	"eoa/memstore":         {"eoa", "eoa/internal/account", "eoa/kvstore"},
	"eoa/ethchain":         {"eoa", "eoa/internal/account"},
	"eoa/kms":              {"eoa", "eoa/internal/account"},
	"eoa/jobs":             {"eoa", "eoa/internal/account"},
	"eoa/eoatest":          {"eoa", "eoa/blobs", "eoa/internal/account"},
	"eoa/storetest":        {"eoa", "eoa/blobs", "eoa/internal/account", "eoa/eoatest"},
	"eoa/webhook":          {"eoa", "eoa/internal/account"},
	// jamtest makes proofs, and takes no rule from canonical/proof that it tests. Its services
	// follow the rules of package service.
	"jamtest":            {"", "canonical/proof", "canonical/statetrie", "service", "service/internal/asm", "service/internal/pvm", "submit/codec"},
	"jamtest/jip2server": {"", "canonical/proof", "canonical/statetrie", "jamtest", "service", "service/internal/asm", "service/internal/pvm", "submit/codec"},

	// Shared by several packages; of no use outside.
	"internal/backoff":    {},
	"internal/fields":     {},
	"internal/headers":    {""},
	"internal/feed":       {"", "anchor", "anchor/chainview", "bundlequeue", "submit"},
	"internal/minheap":    {},
	"internal/smallorder": {},
	"internal/mutation":   {},
	"internal/postgres":   {},
	"internal/repeat":     {},
	"internal/tidy":       {},
	"internal/smalldisk":  {},
	"internal/wait":       {},
	"internal/words": {"", "anchor", "anchor/chainview", "builder", "bundlequeue", "canonical", "canonical/proof", "canonical/statetrie",
		"service", "service/internal/asm", "service/internal/pvm", "submit", "journal", "submit/codec"},
	"internal/bubble": {""},
	"internal/wire":   {},
	// Assembler and interpreter of the rollup's service.
	"service/internal/asm": {"", "service/internal/pvm", "submit/codec"},
	"service/internal/pvm": {"", "submit/codec"},

	// Nested modules.
	"eoa/redisstore":           {"eoa", "eoa/internal/account", "eoa/kvstore"},
	"pebble/internal/fulldisk": {},
	"pebble/internal/powercut": {"pebble/internal/fulldisk", "pebble/pebbledb"},
	"pebble/pebbledb":          {},
	"pebble/pebbleeoa":         {"eoa", "eoa/internal/account", "eoa/kvstore", "pebble/pebbledb"},
	"pebble/pebblejournal":     {"pebble/pebbledb", "journal"},
	"pebble/pebblestate":       {"", "pebble/pebbledb", "statedb", "statedb/ubt"},
	"statedb/evm":              {"", "statedb", "statedb/ubt"},
	"submit/jamnps/jamnpsnet": {"", "anchor", "anchor/chainview", "builder", "bundlequeue", "canonical", "canonical/statetrie", "submit", "journal",
		"submit/codec", "submit/jamnps"},
	// submit/jamnps verifies the state that peers send.
	"submit/jamnps": {"", "anchor", "anchor/chainview", "bundlequeue", "canonical/statetrie", "submit", "submit/codec"},
}

// apart are modules outside the workspace, which may import anything.
var apart = []string{"tools", filepath.Join("internal", "bench"), filepath.Join("eoa", "jobs", "riverjobs")}

func TestImportRules(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range moduleDirs(t) {
		for pkg, deps := range houseDependencies(t, dir) {
			if strings.HasPrefix(pkg, "examples") {
				continue // may import anything
			}
			if strings.HasPrefix(pkg, "evmrollup") { // composes the library, which never imports it
				for _, dep := range deps {
					require.False(t, strings.HasPrefix(dep, "examples"), "%q imports %q: an example is never imported", pkg, dep)
				}
				continue
			}
			allowed, known := mayImport[pkg]
			require.True(t, known, "package %q is not in the table of import rules", pkg)
			seen[pkg] = true
			for _, dep := range deps {
				require.False(t, strings.HasPrefix(dep, "examples"), "%q imports %q: an example is never imported", pkg, dep)
				if !strings.HasPrefix(dep, "internal/") {
					require.Contains(t, allowed, dep, "%q depends on %q", pkg, dep)
				}
			}
		}
	}
	for _, pkg := range []string{"", "anchor", "bundlequeue", "canonical", "eoa", "jamtest", "statedb", "statedb/evm", "submit", "txpool"} {
		require.True(t, seen[pkg], "package %q was not checked", pkg)
	}
}

// Hosts copy the example of the README, with its tests.
func TestCopiedExampleImportsNothingInternal(t *testing.T) {
	dir := filepath.Join(root, "examples", "embed")
	imports := goList(t, dir, "-f", "{{range .Imports}}{{.}}\n{{end}}{{range .TestImports}}{{.}}\n{{end}}{{range .XTestImports}}{{.}}\n{{end}}", ".")
	require.Contains(t, imports, module+"/builder")
	for _, imported := range imports {
		require.NotContains(t, imported, "/internal/")
	}
}

// The root package holds shared types. It takes only common from go-ethereum, and the check of
// fields from jamq.
func TestRootImportsOnlyCommon(t *testing.T) {
	for _, imported := range goList(t, root, "-f", "{{join .Imports \"\\n\"}}", ".") {
		if strings.Contains(imported, ".") { // not the standard library
			require.Contains(t, []string{"github.com/ethereum/go-ethereum/common", module + "/internal/fields"}, imported)
		}
	}
}

// gohashtree builds on two architectures only, and a guarantor may verify
// witnesses on RISC-V.
func TestGohashtreeWhereItBuilds(t *testing.T) {
	const assembly = "github.com/prysmaticlabs/gohashtree"
	for arch, want := range map[string]bool{"amd64": true, "arm64": true, "riscv64": false, "386": false} {
		t.Setenv("GOARCH", arch)
		require.Equal(t, want, slices.Contains(goList(t, root, "-deps", "-test", "./statedb/..."), assembly), arch)
	}
}

// moduleDirs returns the directory of each module of the workspace.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() != "go.mod" {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil && !slices.Contains(apart, dir) {
			dirs = append(dirs, filepath.Join(root, dir))
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	return dirs
}

// houseDependencies returns, for each package of the module in dir, the
// packages of this repository that it depends on.
func houseDependencies(t *testing.T, dir string) map[string][]string {
	t.Helper()
	house := map[string][]string{}
	for _, line := range goList(t, dir, "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...") {
		fields := strings.Fields(line)
		var deps []string
		for _, dep := range fields[1:] {
			if dep == module || strings.HasPrefix(dep, module+"/") {
				deps = append(deps, inHouse(dep))
			}
		}
		house[inHouse(fields[0])] = deps
	}
	return house
}

func inHouse(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func goList(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=") // the workspace, also if the tests run without it
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list in %s: %s", dir, stderr.String())
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

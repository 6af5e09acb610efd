package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// asRefnode is the variable that makes the test binary the program.
const asRefnode = "REFNODE_TEST_MAIN"

// TestMain lets the test binary be the program that tests start and kill.
func TestMain(m *testing.M) {
	if os.Getenv(asRefnode) != "" {
		main()
		os.Exit(0)
	}
	code := m.Run()
	if programs != "" {
		_ = os.RemoveAll(programs)
	}
	os.Exit(code)
}

// refnode returns this program as a process that was not started yet.
func refnode(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asRefnode+"=1")
	return cmd
}

// programs is the directory for the programs that tests build. TestMain removes it.
var programs string

// buildJAMNode builds examples/jamnode once for all tests.
var buildJAMNode = sync.OnceValues(func() (binary string, err error) {
	if programs, err = os.MkdirTemp("", "jamq-refnode-"); err != nil {
		return "", err
	}
	binary = filepath.Join(programs, "jamnode")
	out, err := exec.Command("go", "build", "-o", binary, "../jamnode").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

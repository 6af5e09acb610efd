package main

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	jamnode "github.com/jamq/jamq/examples/jamnode/command"
	verify "github.com/jamq/jamq/examples/verify/command"
)

// asProgram is the variable that makes the test binary one of the programs.
const asProgram = "REFNODE_TEST_PROGRAM"

// TestMain lets the test binary be a program that tests start and kill. So a test
// builds nothing, and runs the code that it was built with.
func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "refnode":
		main()
	case "jamnode":
		os.Exit(jamnode.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "verify":
		os.Exit(verify.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	default:
		os.Exit(m.Run())
	}
}

// program returns one of the programs as a process that was not started yet.
func program(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"="+name)
	return cmd
}

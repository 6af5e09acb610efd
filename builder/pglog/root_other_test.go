//go:build !unix

package pglog_test

import "os/exec"

// unprivileged does nothing on systems without root.
func unprivileged(*exec.Cmd, string) error { return nil }

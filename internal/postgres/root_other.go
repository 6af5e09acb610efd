//go:build !unix

package postgres

import "os/exec"

// unprivileged does nothing on systems without root.
func unprivileged(*exec.Cmd, string) error { return nil }

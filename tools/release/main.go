// Command release prepares and rehearses a release of the modules of this
// repository. The script .ci/release runs it and lists its commands.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	top := strings.TrimSpace(string(out))
	switch {
	case len(args) == 1 && args[0] == "tidy":
		return tidy(top)
	case len(args) == 2 && args[0] == "version":
		for _, directory := range directories[1:] {
			if err := setVersion(filepath.Join(top, filepath.FromSlash(directory), "go.mod"), args[1]); err != nil {
				return err
			}
		}
		return nil
	case len(args) == 1 && args[0] == "dependencies":
		return published(top, func(c *consumer, source string) error {
			page, err := c.dependencies(source)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(top, dependenciesPage), []byte(page), 0o644)
		})
	case len(args) == 1 && args[0] == "api":
		return checkAPI(top)
	case len(args) == 1 && args[0] == "rehearse":
		return rehearse(top)
	}
	return errors.New("want one of: tidy, version VERSION, dependencies, api, rehearse")
}

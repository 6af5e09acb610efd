package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// root is the path of the root module. The others are named after their
// directories in it.
const root = "github.com/jamq/jamq"

// directories are the published modules, each after those that it requires.
var directories = []string{".", "builder/pglog", "eoa", "pebble", "eoa/redisstore", "statedb/evm", "submit/jamnps", "evmrollup", "eoa/jobs/riverjobs", "examples"}

// modulePath returns the path of the module in a directory.
func modulePath(directory string) string { return path.Join(root, directory) }

// ours reports whether a module is one of this repository.
func ours(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

// edit changes the go.mod file of a module.
func edit(file string, change func(*modfile.File) error) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(file, raw, nil)
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	f.Cleanup()
	if raw, err = f.Format(); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}

// setVersion makes a module require a version of the others of this repository.
func setVersion(file, version string) error {
	return edit(file, func(f *modfile.File) error {
		if len(f.Replace) > 0 {
			return fmt.Errorf("it replaces %s, and a published module replaces nothing", f.Replace[0].Old.Path)
		}
		for _, r := range f.Require {
			if ours(r.Mod.Path) {
				if err := f.AddRequire(r.Mod.Path, version); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tidy runs go mod tidy in the modules. The nested ones require versions of the
// others that are not published yet, so it replaces them in a copy of go.mod.
func tidy(top string) error {
	for _, directory := range directories {
		if err := tidyModule(top, directory); err != nil {
			return fmt.Errorf("%s: %w", directory, err)
		}
	}
	return nil
}

func tidyModule(top, directory string) error {
	scratch, err := os.MkdirTemp("", "tidy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	at := filepath.Join(top, filepath.FromSlash(directory))
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(at, name))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.WriteFile(filepath.Join(scratch, name), raw, 0o644); err != nil {
			return err
		}
	}
	mod := filepath.Join(scratch, "go.mod")
	err = edit(mod, func(f *modfile.File) error {
		for _, other := range directories {
			if other != directory {
				if err := f.AddReplace(modulePath(other), "", filepath.Join(top, filepath.FromSlash(other)), ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := run(at, []string{"GOWORK=off"}, "go", "mod", "tidy", "-modfile="+mod); err != nil {
		return err
	}
	err = edit(mod, func(f *modfile.File) error {
		for _, other := range directories {
			if other != directory {
				if err := f.DropReplace(modulePath(other), ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(scratch, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(at, name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command in a directory, with additional variables.
func run(directory string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = directory, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

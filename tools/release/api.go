package main

import (
	"errors"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// listedChanges holds the incompatible changes since the last release that are
// intended, one per line, as compareAPI prints them. A release empties it.
const listedChanges = "docs/api-changes.txt"

// checkAPI compares the exported names of all published packages with those of
// the last release. It returns an error that lists the incompatible changes that
// are not listed, and those that are listed and do not exist. Before the first
// release there is nothing to compare.
func checkAPI(top string) (err error) {
	last, err := exec.Command("git", "-C", top, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").Output()
	if err != nil {
		fmt.Println("no version is tagged yet, so there is no API to compare with")
		return nil
	}
	scratch, err := os.MkdirTemp("", "api")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	before := filepath.Join(scratch, "before")
	if err := run(scratch, nil, "git", "-c", "advice.detachedHead=false", "clone", "-q", "--branch", strings.TrimSpace(string(last)), top, before); err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(top, listedChanges))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return compareAll(before, top, strings.Split(strings.TrimSpace(string(raw)), "\n"))
}

// compareAll compares two checkouts, module by module.
func compareAll(before, after string, listed []string) error {
	var changes []string
	for _, directory := range directories {
		if directory == "examples" {
			continue // an example is never imported
		}
		at := filepath.FromSlash(directory)
		if _, err := os.Stat(filepath.Join(before, at, "go.mod")); os.IsNotExist(err) {
			continue // a new module
		}
		found, err := compareAPI(filepath.Join(before, at), filepath.Join(after, at))
		if err != nil {
			return err
		}
		changes = append(changes, found...)
	}
	var problems []error
	for _, change := range changes {
		if !slices.Contains(listed, change) {
			problems = append(problems, fmt.Errorf("incompatible, and not in %s: %s", listedChanges, change))
		}
	}
	for _, change := range listed {
		if change != "" && !slices.Contains(changes, change) {
			problems = append(problems, fmt.Errorf("in %s, but there is no such change: %s", listedChanges, change))
		}
	}
	return errors.Join(problems...)
}

// compareAPI returns the incompatible changes between two versions of a module.
func compareAPI(before, after string) ([]string, error) {
	old, err := exported(before)
	if err != nil {
		return nil, err
	}
	now, err := exported(after)
	if err != nil {
		return nil, err
	}
	var changes []string
	for path, pkg := range old {
		other := now[path]
		if other == nil {
			changes = append(changes, path+": removed")
			continue
		}
		for _, change := range apidiff.Changes(pkg, other).Changes {
			if !change.Compatible {
				changes = append(changes, path+": "+change.Message)
			}
		}
	}
	slices.Sort(changes)
	return changes, nil
}

// exported loads the public packages of the module in a directory.
func exported(directory string) (map[string]*types.Package, error) {
	const mode = packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypesInfo
	// The workspace of the checkout has the other modules.
	cfg := &packages.Config{Mode: mode, Dir: directory, Env: append(os.Environ(), "GOWORK=")}
	loaded, err := packages.Load(cfg, "./...")
	if err != nil {
		return nil, err
	}
	found := map[string]*types.Package{}
	for _, pkg := range loaded {
		for _, e := range pkg.Errors {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, e)
		}
		if pkg.Name != "main" && !strings.Contains(pkg.PkgPath+"/", "/internal/") {
			found[pkg.PkgPath] = pkg.Types
		}
	}
	return found, nil
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// rehearsed is the version under which the rehearsal publishes the modules.
const rehearsed = "v0.1.0-rehearsal"

// rehearse publishes the modules of HEAD as a module proxy does, in a temporary
// directory, and imports them from there: each one by itself, a program with
// go install, and a consumer that uses several packages together.
func rehearse(top string) error {
	return published(top, func(c *consumer, source string) error {
		return errors.Join(c.imports(source), c.checkDependencies(source), c.count(modulePath("txpool")))
	})
}

// published publishes the modules of HEAD, and calls use with a consumer and the
// clone that was published.
func published(top string, use func(c *consumer, source string) error) (err error) {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	// The files of a module cache are read-only.
	defer func() {
		err = errors.Join(err, exec.Command("chmod", "-R", "u+w", scratch).Run(), os.RemoveAll(scratch))
	}()
	source, proxy := filepath.Join(scratch, "source"), filepath.Join(scratch, "proxy")
	if err := run(scratch, nil, "git", "clone", "-q", top, source); err != nil {
		return err
	}
	for _, directory := range directories {
		if err := publish(source, directory, proxy); err != nil {
			return fmt.Errorf("publish %s: %w", directory, err)
		}
	}
	return use(&consumer{scratch: scratch, env: importing(proxy, filepath.Join(scratch, "cache"))}, source)
}

// imports imports each module, the reference node, and programs that use several
// packages.
func (c *consumer) imports(source string) error {
	for _, directory := range directories {
		if err := c.get(modulePath(directory)); err != nil {
			return err
		}
	}
	bin := filepath.Join(c.scratch, "bin")
	program := modulePath("examples/refnode")
	if err := run(c.scratch, append(slices.Clone(c.env), "GOBIN="+bin), "go", "install", program+"@"+rehearsed); err != nil {
		return err
	}
	if err := run(c.scratch, nil, filepath.Join(bin, "refnode"), "-demo", "5"); err != nil {
		return err
	}
	// The other programs are those of the README and of docs/evmrollup.md.
	return c.use(filepath.Join(source, "tools", "release", "testdata", "consumer"),
		filepath.Join(source, "examples", "embed"), filepath.Join(source, "examples", "evmhost"))
}

// publish writes a module to a directory with the layout of a module proxy.
func publish(source, directory, proxy string) error {
	at := filepath.Join(source, filepath.FromSlash(directory))
	mod := filepath.Join(at, "go.mod")
	if err := setVersion(mod, rehearsed); err != nil {
		return err
	}
	version := module.Version{Path: modulePath(directory), Version: rehearsed}
	escaped, err := module.EscapePath(version.Path)
	if err != nil {
		return err
	}
	out := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	raw, err := os.ReadFile(mod)
	if err != nil {
		return err
	}
	if f, err := modfile.Parse(mod, raw, nil); err != nil || f.Module.Mod.Path != version.Path {
		return fmt.Errorf("the module is %v, want %s: %w", f.Module, version.Path, err)
	}
	info, err := json.Marshal(map[string]any{"Version": rehearsed, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(rehearsed + "\n"), rehearsed + ".info": info, rehearsed + ".mod": raw} {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(out, rehearsed+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zip.CreateFromDir(archive, version, at), archive.Close())
}

// importing returns the variables of a machine that finds the modules of this
// repository in the proxy only, with an empty cache. It reads the modules of
// others from the cache of this machine, or from the proxy that it is set to.
func importing(proxy, cache string) []string {
	value := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	local := "file://" + filepath.ToSlash(filepath.Join(value("GOMODCACHE"), "cache", "download"))
	return []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -trimpath", // which lets builds share their results
		"GOMODCACHE=" + cache,
		"GOPROXY=" + strings.Join([]string{"file://" + filepath.ToSlash(proxy), local, value("GOPROXY")}, ","),
		"GONOSUMDB=" + strings.Trim(root+","+root+"/*,"+value("GONOSUMDB"), ","),
	}
}

// consumer makes modules outside this repository that import it.
type consumer struct {
	scratch string
	env     []string
	made    int
}

// start makes an empty module.
func (c *consumer) start() (string, error) {
	c.made++
	directory := filepath.Join(c.scratch, fmt.Sprintf("consumer%d", c.made))
	if err := os.Mkdir(directory, 0o755); err != nil {
		return "", err
	}
	return directory, run(directory, c.env, "go", "mod", "init", "example.org/consumer")
}

// get adds a module to an empty one.
func (c *consumer) get(module string) error {
	directory, err := c.start()
	if err != nil {
		return err
	}
	return run(directory, c.env, "go", "get", module+"@"+rehearsed)
}

// use copies a program and, beside it, further packages. It checks and tests all
// of them, and runs the program.
func (c *consumer) use(program string, more ...string) error {
	directory, err := c.start()
	if err != nil {
		return err
	}
	if err := os.CopyFS(directory, os.DirFS(program)); err != nil {
		return err
	}
	for _, pkg := range more {
		if err := os.CopyFS(filepath.Join(directory, filepath.Base(pkg)), os.DirFS(pkg)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"get", root + "@" + rehearsed}, {"mod", "tidy"}, {"vet", "./..."}, {"test", "-run", "^TestConsumer$|^Example", "./..."}, {"run", "."}} {
		if err := run(directory, c.env, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

// count prints the modules that an importer of one package downloads.
func (c *consumer) count(pkg string) error {
	c.scratch = filepath.Join(c.scratch, "one")
	cache := filepath.Join(c.scratch, "cache")
	if err := os.MkdirAll(c.scratch, 0o755); err != nil {
		return err
	}
	c.env = append(c.env, "GOMODCACHE="+cache)
	directory, err := c.start()
	if err != nil {
		return err
	}
	file := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", pkg)
	if err := os.WriteFile(filepath.Join(directory, "main.go"), []byte(file), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"get", pkg + "@" + rehearsed}, {"build", "-o", os.DevNull, "."}} {
		if err := run(directory, c.env, "go", args...); err != nil {
			return err
		}
	}
	downloads := 0
	err = filepath.WalkDir(filepath.Join(cache, "cache", "download"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".zip" {
			downloads++
		}
		return err
	})
	fmt.Printf("an importer of %s downloads %d modules\n", pkg, downloads)
	return err
}

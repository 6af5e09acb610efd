package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	// ErrSurvived is wrapped by [Runner.Run] if the test command passes with
	// the mutation.
	ErrSurvived = errors.New("mutation: no test noticed the mutation")
	// ErrBuild is wrapped if the code does not compile or the package does not
	// exist. Such a mutation proves nothing.
	ErrBuild = errors.New("mutation: the code does not compile")
	// ErrTimeout is wrapped if the test command exceeds [Runner.Timeout]. It
	// proves nothing either: a slow machine has the same effect.
	ErrTimeout = errors.New("mutation: the test command exceeded its time limit")
	// ErrBaseline is wrapped by [Runner.Baseline] if the test command does not
	// pass without a mutation, or runs no test.
	ErrBaseline = errors.New("mutation: the test command must pass without the mutation")
	// ErrCommand is wrapped if go test failed and no test did.
	ErrCommand = errors.New("mutation: go test failed without a failing test")
)

// Runner runs the test commands of mutations in a checkout.
type Runner struct {
	// Root is the absolute path of the checkout.
	Root string
	// Timeout is the time limit of one test command, without compilation.
	Timeout time.Duration
}

// Run applies a mutation and runs its test command. It returns the names of
// the tests that failed, which is the success of a mutation.
//
// Without such a test the error wraps [ErrSurvived], [ErrBuild], [ErrTimeout]
// or [ErrCommand]; or [ErrNotFound] or [ErrAmbiguous] if the mutation does not
// apply.
func (r Runner) Run(ctx context.Context, m *Mutation) ([]string, error) {
	file := r.path(m.File)
	_, edited, err := r.edit(m)
	if err != nil {
		return nil, err
	}
	overlay, remove, err := writeOverlay(map[string]string{file: edited})
	if err != nil {
		return nil, err
	}
	defer remove()
	seen, err := r.test(ctx, m, "-overlay", overlay, "-count=1", "-failfast", "-vet=off")
	if err != nil {
		return nil, err
	}
	return seen.noticed(m)
}

// path returns the path of a file or directory of the checkout.
func (r Runner) path(name string) string { return filepath.Join(r.Root, filepath.FromSlash(name)) }

// edit returns the source of the file of a mutation and the edited source.
func (r Runner) edit(m *Mutation) (source, edited string, err error) {
	content, err := os.ReadFile(r.path(m.File))
	if err != nil {
		return "", "", fmt.Errorf("%w: %s: %w", ErrNotFound, m.Where, err)
	}
	source = string(content)
	edited, err = m.Apply(source)
	return source, edited, err
}

// Baseline runs the test command of a mutation without the mutation. The error
// wraps [ErrBaseline] if a test fails or none passes. It may also wrap
// [ErrBuild], [ErrTimeout] or [ErrCommand].
func (r Runner) Baseline(ctx context.Context, m *Mutation) error {
	seen, err := r.test(ctx, m, "-vet=off")
	if err != nil {
		return err
	}
	return seen.clean(m)
}

// writeOverlay writes the edited sources, by the paths of their files, to a new
// directory, and the JSON that makes the go command read them in place of the
// files. remove deletes the directory.
func writeOverlay(edited map[string]string) (overlay string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	replace := make(map[string]string, len(edited))
	for file, source := range edited {
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d_%s", len(replace), filepath.Base(file)))
		err = errors.Join(err, os.WriteFile(replace[file], []byte(source), 0o600))
	}
	overlay = filepath.Join(dir, "overlay.json")
	content, failure := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err = errors.Join(err, failure, os.WriteFile(overlay, content, 0o600)); err != nil {
		remove()
		return "", nil, err
	}
	return overlay, remove, nil
}

// outcome is the result of a run of go test.
type outcome struct {
	passed    int
	failed    []string
	unbuilt   bool
	outOfTime bool
	goOutput  bytes.Buffer // everything else that it printed
}

// noticed returns the tests that failed because of a mutation. Without one, the
// error wraps [ErrSurvived].
func (o *outcome) noticed(m *Mutation) ([]string, error) {
	if len(o.failed) == 0 {
		return nil, fmt.Errorf("%w: %s: %q passes: %s", ErrSurvived, m.Where, m.Name, m.command())
	}
	return o.failed, nil
}

// clean returns an error that wraps [ErrBaseline] if a test failed or none
// passed.
func (o *outcome) clean(m *Mutation) error {
	switch {
	case len(o.failed) > 0:
		return fmt.Errorf("%w: %s: %s: have failures of %v, want none", ErrBaseline, m.Where, m.command(), o.failed)
	case o.passed == 0:
		return fmt.Errorf("%w: %s: %s: no test passes, want at least one", ErrBaseline, m.Where, m.command())
	}
	return nil
}

// test runs the test command of a mutation with additional flags.
func (r Runner) test(ctx context.Context, m *Mutation, flags ...string) (*outcome, error) {
	module, pkg, err := r.locate(m.Package)
	if err != nil {
		return nil, err
	}
	// One package at a time: the caller runs several mutations at once.
	args := slices.Concat([]string{"test", "-json", "-p=1", fmt.Sprintf("-timeout=%v", r.Timeout)}, flags, []string{pkg}, m.Args)
	return r.start(ctx, m, module, args)
}

// start runs the go command for a mutation and reads what it prints as the
// output of go test -json.
func (r Runner) start(ctx context.Context, m *Mutation, dir string, args []string, env ...string) (*outcome, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Test vectors are not part of a checkout. Without them the outcome is the
	// same on every machine.
	cmd.Env = slices.Concat(os.Environ(), []string{"JAMQ_VECTORS="}, m.Env, env)
	printed, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	seen := parse(printed)
	switch {
	case seen.unbuilt:
		return nil, fmt.Errorf("%w: %s: %s\n%s", ErrBuild, m.Where, m.command(), &seen.goOutput)
	case seen.outOfTime:
		return nil, fmt.Errorf("%w: %s: %s: want less than %v", ErrTimeout, m.Where, m.command(), r.Timeout)
	case err != nil && len(seen.failed) == 0:
		return nil, fmt.Errorf("%w: %s: %s: %w\n%s", ErrCommand, m.Where, m.command(), err, &seen.goOutput)
	}
	return seen, nil
}

// locate returns the directory of the module of a package, and the package's
// path for go test within it.
func (r Runner) locate(pkg string) (module, path string, err error) {
	module, err = moduleOf(r.Root, pkg)
	if err != nil {
		return "", "", err
	}
	within, err := filepath.Rel(module, r.path(pkg))
	return module, "./" + filepath.ToSlash(within), err
}

// moduleOf returns the directory of the module that contains a package: the
// nearest one upwards with a go.mod file. Nested modules can then be tested
// with a workspace and without.
func moduleOf(root, pkg string) (string, error) {
	for dir := filepath.Join(root, filepath.FromSlash(pkg)); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == root || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%w: no go.mod above package %s", ErrCommand, pkg)
		}
	}
}

// parse reads the output of go test -json.
func parse(printed []byte) *outcome {
	seen := &outcome{}
	for line := range bytes.Lines(printed) {
		var event struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal(line, &event) != nil {
			seen.goOutput.Write(line) // of the go command itself
			continue
		}
		switch {
		case event.Action == "build-fail" || event.FailedBuild != "":
			seen.unbuilt = true
		case event.Action == "pass" && event.Test != "":
			seen.passed++
		case event.Action == "fail" && event.Test != "":
			seen.failed = append(seen.failed, event.Test)
		case strings.HasPrefix(event.Output, "panic: test timed out after "):
			seen.outOfTime = true
		}
		seen.goOutput.WriteString(event.Output)
	}
	return seen
}

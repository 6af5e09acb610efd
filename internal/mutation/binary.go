package mutation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Binary is the compiled test of one package with the code of several
// mutations. Each run of it selects one of them, or none, so that they all
// share one compilation.
type Binary struct {
	runner  Runner
	dir     string // of the tested package
	path    string
	numbers map[*Mutation]int // from 1 on
}

// Compile compiles the test of a package once for all given mutations that name
// it. Close deletes the binary.
//
// A mutation can share a binary if it changes only bodies of functions. Compile
// leaves the others out, also those that do not apply. See [Binary.Contains].
// The error wraps [ErrBuild] if the code with the mutations does not compile.
func (r Runner) Compile(ctx context.Context, pkg string, mutations []*Mutation) (*Binary, error) {
	b := &Binary{runner: r, dir: r.path(pkg), numbers: make(map[*Mutation]int)}
	files := make(map[string]*merged)
	for _, m := range mutations {
		source, edited, err := r.edit(m)
		if err != nil {
			continue
		}
		if files[m.File] == nil {
			if files[m.File], err = newMerged(source); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrBuild, m.File, err)
			}
		}
		if number := len(b.numbers) + 1; files[m.File].add(number, edited) {
			b.numbers[m] = number
		}
	}
	overlay, remove, err := writeOverlay(r.mergedSources(files))
	if err != nil {
		return nil, err
	}
	b.path = filepath.Join(filepath.Dir(overlay), "tests")
	if err := b.compile(ctx, pkg, overlay); err != nil {
		remove()
		return nil, err
	}
	return b, nil
}

// mergedSources returns the sources with switches by the paths of their files.
func (r Runner) mergedSources(files map[string]*merged) map[string]string {
	out := make(map[string]string)
	for name, m := range files {
		file := r.path(name)
		out[file] = m.text()
		out[filepath.Join(filepath.Dir(file), "mutation_selector.go")] = selectorSource(m.pkg)
	}
	return out
}

// compile runs the compiler.
func (b *Binary) compile(ctx context.Context, pkg, overlay string) error {
	module, path, err := b.runner.locate(pkg)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", b.path, path)
	cmd.Dir = module
	printed, err := cmd.CombinedOutput()
	if _, missing := os.Stat(b.path); err != nil || missing != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%w: %s: %w\n%s", ErrBuild, pkg, errors.Join(err, missing), printed))
	}
	return nil
}

// Close deletes the binary.
func (b *Binary) Close() error { return os.RemoveAll(filepath.Dir(b.path)) }

// Contains reports whether the binary has the code of a mutation. If not, use
// [Runner.Run].
func (b *Binary) Contains(m *Mutation) bool { return b.numbers[m] > 0 }

// Run is [Runner.Run] for a mutation that the binary contains.
func (b *Binary) Run(ctx context.Context, m *Mutation) ([]string, error) {
	if !b.Contains(m) {
		return nil, fmt.Errorf("%w: %s: not in this binary", ErrCommand, m.Where)
	}
	seen, err := b.test(ctx, m, b.numbers[m], "-test.failfast")
	if err != nil {
		return nil, err
	}
	return seen.noticed(m)
}

// Baseline is [Runner.Baseline] with the binary's original code.
func (b *Binary) Baseline(ctx context.Context, m *Mutation) error {
	seen, err := b.test(ctx, m, 0)
	if err != nil {
		return err
	}
	return seen.clean(m)
}

// test runs the binary with the arguments of a mutation's test command. The
// tool test2json prints what go test -json prints.
func (b *Binary) test(ctx context.Context, m *Mutation, number int, flags ...string) (*outcome, error) {
	args := slices.Concat(
		[]string{"tool", "test2json", b.path, "-test.v=test2json", fmt.Sprintf("-test.timeout=%v", b.runner.Timeout)},
		flags, binaryArgs(m.Args))
	return b.runner.start(ctx, m, b.dir, args, fmt.Sprintf("%s=%d", selector, number))
}

// goTestFlags are the flags of go test that a test binary knows by the prefix
// "test.", as far as tables use them.
var goTestFlags = []string{"run", "skip", "short", "timeout", "count", "cpu", "parallel"}

// binaryArgs translates arguments of go test to those of a test binary.
func binaryArgs(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(goTestFlags, name) {
			out[i] = "-test." + strings.TrimLeft(arg, "-")
		}
	}
	return out
}

// CompileAll compiles binaries for all given mutations of a package that can
// share one. If the code with all of them does not compile, it divides them in
// halves, so that one mutation that does not compile is left out alone.
//
// It returns the binary of each mutation. The others need [Runner.Run].
func (r Runner) CompileAll(ctx context.Context, pkg string, mutations []*Mutation) (map[*Mutation]*Binary, error) {
	b, err := r.Compile(ctx, pkg, mutations)
	out := make(map[*Mutation]*Binary)
	switch {
	case err == nil && len(b.numbers) == 0:
		return out, b.Close()
	case err == nil:
		for m := range b.numbers {
			out[m] = b
		}
		return out, nil
	case ctx.Err() != nil || !errors.Is(err, ErrBuild):
		return nil, err
	case len(mutations) < 2:
		return out, nil
	}
	half := len(mutations) / 2
	for _, part := range [][]*Mutation{mutations[:half], mutations[half:]} {
		compiled, err := r.CompileAll(ctx, pkg, part)
		maps.Copy(out, compiled)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

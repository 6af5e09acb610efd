package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes a module with the given files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		file := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// An incompatible change is an error unless it is listed, and so is a listed one
// that does not exist. Additions and internal packages do not matter.
func TestCompareAll(t *testing.T) {
	const mod = "module example.org/m\n\ngo 1.25\n"
	before := tree(t, map[string]string{
		"go.mod": mod, "m.go": "package m\n\nfunc F(int) {}\n", "gone/gone.go": "package gone\n", "internal/i/i.go": "package i\n\nfunc G() {}\n",
	})
	after := tree(t, map[string]string{
		"go.mod": mod, "m.go": "package m\n\nfunc F(string) {}\n\nfunc New() {}\n", "internal/i/i.go": "package i\n",
	})
	changed, removed := "example.org/m: F: changed from func(int) to func(string)", "example.org/m/gone: removed"
	err := compareAll(before, after, nil)
	if err == nil || !strings.Contains(err.Error(), changed) || !strings.Contains(err.Error(), removed) || strings.Contains(err.Error(), "/internal/") {
		t.Fatalf("have %v, want both changes", err)
	}
	if err := compareAll(before, after, []string{changed, removed}); err != nil {
		t.Error(err)
	}
	if err := compareAll(before, after, []string{changed, removed, "example.org/m: H: removed"}); err == nil {
		t.Error("a change that does not exist is listed, and there is no error")
	}
	if err := compareAll(before, before, []string{""}); err != nil {
		t.Error(err)
	}
}

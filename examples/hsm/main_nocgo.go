//go:build !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hsm: built without cgo, want cgo for PKCS#11")
	os.Exit(1)
}

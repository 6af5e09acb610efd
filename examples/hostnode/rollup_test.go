package main

import (
	"fmt"
	"testing"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

func TestCounter(t *testing.T) {
	buildertest.Run(t, buildertest.Case[string]{
		New:       func() builder.Rollup[string] { return new(counter) },
		Operation: func(i int) []byte { return fmt.Append(nil, i) },
		Executed:  func(payload []byte) [][]byte { return [][]byte{payload} },
	})
}

package main

import (
	"fmt"
	"testing"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

func TestCounter(t *testing.T) {
	buildertest.Run(t, buildertest.Case[[]byte]{
		New:       func() builder.Rollup[[]byte] { return new(counter) },
		Operation: func(i int) []byte { return fmt.Appendf(nil, "%d \xff", i) }, // no text
		Executed:  func(payload []byte) [][]byte { return [][]byte{payload} },
	})
}

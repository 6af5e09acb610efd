package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommand(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		args []string
		code int
		says string
	}{
		"help":             {t.Context(), []string{"-h"}, 0, "-datadir"},
		"an unknown flag":  {t.Context(), []string{"-x"}, 2, "-x"},
		"an argument":      {t.Context(), []string{"x"}, 2, `unexpected argument "x"`},
		"nothing to send":  {t.Context(), []string{"-n", "0"}, 2, "-n is 0"},
		"no time":          {t.Context(), []string{"-blocks", "0s"}, 2, "-blocks is 0s"},
		"no key":           {t.Context(), []string{"-keyfile", t.TempDir()}, 1, "is a directory"},
		"with metrics":     {t.Context(), []string{"-n", "3", "-blocks", "20ms", "-metrics", "127.0.0.1:0"}, 0, "metrics at http://127.0.0.1:"},
		"no such address":  {t.Context(), []string{"-n", "3", "-metrics", "x"}, 1, "-metrics: "},
		"a few":            {t.Context(), []string{"-n", "3", "-blocks", "20ms"}, 0, "final           3"},
		"stopped too soon": {stopped, []string{"-n", "3"}, 1, "stopped before all transfers were over"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.Equal(t, c.code, command(c.ctx, c.args, &out, &out), out.String())
			require.Contains(t, out.String(), c.says)
		})
	}
}

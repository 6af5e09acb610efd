package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDeveloperMode: it is on unless the node keeps data, uses a foreign chain or
// demonstrates something, and flags that are given win.
func TestDeveloperMode(t *testing.T) {
	all := []string{"*"}
	for _, c := range []struct {
		args []string
		dev  bool
		slot time.Duration
		cors []string
	}{
		{nil, true, devSlot, all},
		{[]string{"-dev"}, true, devSlot, all},
		{[]string{"-slot", "1s", "-http.corsdomain", "http://a"}, true, time.Second, []string{"http://a"}},
		{[]string{"-dev=false"}, false, 6 * time.Second, nil},
		{[]string{"-datadir", "d"}, false, 6 * time.Second, nil},
		{[]string{"-jam", "ws://127.0.0.1:1"}, false, 6 * time.Second, nil},
		{[]string{"-demo", "5"}, false, demoSlot, nil},
		{[]string{"-load", "5"}, false, demoSlot, nil},
		{[]string{"-genesis"}, false, 6 * time.Second, nil},
	} {
		o, err := parse(c.args, io.Discard)
		require.NoError(t, err, c.args)
		require.Equal(t, []any{c.dev, c.dev, c.slot, c.cors}, []any{o.dev, o.rpc.Dev, o.slot, o.rpc.CORS}, c.args)
	}
	for _, with := range [][]string{{"-datadir", "d"}, {"-jam", "ws://127.0.0.1:1"}, {"-demo", "5"}, {"-load", "5"}} {
		_, err := parse(append([]string{"-dev"}, with...), io.Discard)
		require.ErrorContains(t, err, "-dev cannot be used", with)
	}
	for _, with := range [][]string{{"-dev"}, {"-jam", "ws://127.0.0.1:1"}, {"-demo", "5"}} {
		_, err := parse(append([]string{"-genesis"}, with...), io.Discard)
		require.ErrorContains(t, err, "-genesis cannot be used", with)
	}
}

//go:build unix

package page_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/lab"
)

var accessible = flag.Bool("accessible", false, "check the whole page with axe-core and with the keyboard")

// axe returns the script of axe-core. Without it the test is skipped; with JAMQ_REQUIRE_NODE set it
// fails.
func axe(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("JAMQ_REQUIRE_NODE") == "" {
		t.Skip(`skipped: no axe-core; "npm ci" in examples/refnode/page brings it`)
	}
	require.NoError(t, err)
	return string(raw)
}

// busyPage opens the page of a node with all that it can show: faults, the laboratory, and dead
// packages.
func busyPage(t *testing.T) *browser {
	t.Helper()
	if !*accessible {
		t.Skip("skipped: -accessible checks the whole page")
	}
	b := openBrowser(t)
	s := serve(t, "127.0.0.1:0", 150*time.Millisecond, func(cfg *lab.Config) {
		cfg.Lab, cfg.JAM.LossProbability, cfg.JAM.SkipProbability = true, 0.3, 0.1
	})
	b.size(1280, 900, 1, false)
	b.open(s.url)
	b.wait(isLive, "the page does not come to life")
	s.send(20)
	b.wait(count("5")+" === 20", "the transactions are final")
	b.wait(`document.querySelectorAll('#timeline .mark').length > 20`, "the picture is full")
	eval[any](b, drawReplicas)
	return b
}

// TestAccessibleByAxe: axe-core finds nothing that is more than minor on the page, in both colour
// schemes, with and without an explanation that is open.
func TestAccessibleByAxe(t *testing.T) {
	b := busyPage(t)
	eval[any](b, axe(t)+"; null")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, open := range []bool{false, true} {
			if open {
				eval[any](b, `document.querySelector('#flow .term').click()`)
			}
			require.Equal(t, open, eval[bool](b, `!document.getElementById('hint').hidden`))
			found := eval[[]string](b, `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations
				.filter((v) => v.impact !== 'minor')
				.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html + ' ' + n.failureSummary)))`)
			require.Empty(t, found, "%s, explanation open: %v", scheme, open)
		}
		eval[any](b, `document.querySelector('#flow .term').click()`)
	}
	require.Empty(t, b.complaints())
}

// TestForcedColours: with the system's colours, as in Windows' contrast themes, the legend still
// explains the picture, an explanation has an edge, and a pressed button differs from others.
func TestForcedColours(t *testing.T) {
	b := busyPage(t)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "forced-colors", "value": "active"}}})
	require.Equal(t, 6, eval[int](b, `new Set([...document.querySelectorAll('#legend li')].map((e) => getComputedStyle(e, '::before').backgroundColor)).size`))
	eval[any](b, `document.querySelector('#flow .term').click()`)
	require.Equal(t, "solid", eval[string](b, `getComputedStyle(document.getElementById('hint')).borderTopStyle`))
	eval[any](b, `document.getElementById('stop').click()`)
	b.wait(`document.getElementById('stop').ariaPressed === 'true'`, "finality is not stopped")
	require.NotEqual(t, eval[string](b, `getComputedStyle(document.getElementById('kill')).backgroundColor`),
		eval[string](b, `getComputedStyle(document.getElementById('stop')).backgroundColor`))
	require.Empty(t, b.complaints())
}

// key presses a key.
func (b *browser) key(name string, code int) {
	text := map[string]string{"Enter": "\r"}[name]
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text})
	}
}

const (
	keyTab, keyEnter, keyEscape, keyRight, keyDown = 9, 13, 27, 39, 40
)

// focused is the element with the focus.
type focused struct {
	Name, Description, Hint string
	Tag, Expanded, Place    string
}

func (b *browser) focused() focused {
	b.t.Helper()
	return eval[focused](b, `(() => {
		const e = document.activeElement, hint = document.getElementById('hint');
		return { name: e.getAttribute('aria-label') ?? (e.labels?.[0] ?? e).textContent, description: e.getAttribute('aria-description') ?? '', hint: hint.hidden ? '' : hint.textContent,
			tag: e.tagName, expanded: e.getAttribute('aria-expanded') ?? '', place: [...document.querySelectorAll('*')].indexOf(e).toString() }
	})()`)
}

// TestKeyboard: the Tab key reaches every explanation on the page, which is then shown and is the
// description of its element for screen readers. Enter opens and closes it, and Escape closes it.
// The arrow keys do the same in the picture of the chain.
func TestKeyboard(t *testing.T) {
	b := busyPage(t)
	want := eval[int](b, `document.querySelectorAll('[aria-description]').length`)
	require.Greater(t, want, 25)
	reached, terms := map[string]bool{}, 0
	for first := ""; ; {
		b.key("Tab", keyTab)
		f := b.focused()
		if f.Tag == "BODY" || f.Place == first {
			break // round
		}
		if first == "" {
			first = f.Place
		}
		if f.Description == "" {
			continue
		}
		require.NotEmpty(t, f.Name, "%+v", f)
		reached[f.Place] = true
		if f.Expanded == "" {
			continue
		}
		terms++
		require.Equal(t, f.Description, f.Hint)
		require.Equal(t, "true", f.Expanded)
		if terms > 2 {
			continue
		}
		for _, x := range []struct {
			key  string
			code int
			hint string
		}{{"Escape", keyEscape, ""}, {"Enter", keyEnter, f.Description}, {"Enter", keyEnter, ""}} {
			b.key(x.key, x.code)
			f = b.focused()
			require.Equal(t, x.hint, f.Hint, "%s after %s", f.Name, x.key)
			require.Equal(t, fmt.Sprint(x.hint != ""), f.Expanded)
		}
	}
	require.Len(t, reached, want)
	require.Greater(t, terms, 20)

	eval[any](b, `document.querySelector('#timeline').focus()`)
	rows, marks := map[string]bool{}, 0
	for row := 0; row < 5; row++ {
		b.key("ArrowDown", keyDown)
		for range 3 {
			f := b.focused()
			require.NotEmpty(t, f.Hint)
			require.Equal(t, f.Hint, f.Name)
			rows[f.Name] = true
			marks++
			b.key("ArrowRight", keyRight)
		}
	}
	require.Greater(t, len(rows), 5)
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll('#timeline [aria-label]').length`), "only the mark with the focus is named")
	require.Empty(t, b.complaints())
}

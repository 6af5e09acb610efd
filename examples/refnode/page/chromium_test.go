//go:build unix

package page_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/internal/front"
	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/internal/wait"
)

// isLive is a script that reports whether the page shows a node.
const isLive = `document.getElementById('link')?.textContent.trim() === 'live' && document.querySelectorAll('#flow li').length === 6`

// count is a script for a number of the flow: 0 is Users, 5 is Finalized.
func count(step string) string {
	return `Number(document.querySelectorAll('#flow b')[` + step + `].textContent.replace(/,/g, ''))`
}

// drawReplicas is a script that draws three replicas, as on the page of a cluster with -lab.
const drawReplicas = `import('/static/cluster.js').then(({ drawCluster }) => drawCluster({ epoch: 3, kill: true, replicas: [
	{ address: 'http://127.0.0.1:1', leads: true, self: false, lag: 0, away: false },
	{ address: 'http://127.0.0.1:2', leads: false, self: true, lag: 7, away: false },
	{ address: 'http://127.0.0.1:3', leads: false, self: false, lag: 9, away: true },
] }))`

// TestPageInChromium uses the page as people do: it looks on while transactions flow, breaks the
// chain, and lets the node restart.
func TestPageInChromium(t *testing.T) {
	b := openBrowser(t)
	s := serve(t, "127.0.0.1:0", 150*time.Millisecond, withLab)
	b.size(1280, 900, 1, false)
	address := front.New(t)
	address.LeadTo(strings.TrimPrefix(s.url, "http://"))
	b.open("http://" + address.Addr())
	b.wait(isLive, "the page does not come to life")
	b.wait(`!document.getElementById('empty').hidden`, "an empty node says what to do")

	t.Run("updates while transactions flow", func(t *testing.T) {
		b.wait(`document.querySelectorAll('#timeline .block').length > 3`, "JAM blocks are drawn")
		s.send(12)
		b.wait(count("0")+" === 12", "sent transactions are counted")
		b.wait(count("5")+" === 12", "final transactions are counted")
		b.wait(`document.querySelectorAll('#timeline .accumulated').length > 0`, "bundles have time lines")
		b.wait(`document.querySelector('#heads .fin .number').textContent !== '0'`, "the heads move")
		b.wait(`document.getElementById('events').innerText.includes(' final')`, "events are listed")
		require.False(t, eval[bool](b, `!document.getElementById('empty').hidden`))
		b.wait(`document.querySelector('#plots .submitted path.stroke').getAttribute('d') !== null`, "the base fee moves")
		require.True(t, eval[bool](b, `document.querySelector('#plots .accumulated svg').hasAttribute('hidden')`), "the floor does not move")
	})
	t.Run("hints", func(t *testing.T) {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": 0, "y": 0})
		at := eval[[]float64](b, `(() => { const r = document.querySelector('#flow li').getBoundingClientRect(); return [r.x + 20, r.y + 20] })()`)
		b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at[0], "y": at[1]})
		b.wait(`!document.getElementById('hint').hidden && document.getElementById('hint').textContent.includes('wallets')`, "a hint shows")
		eval[any](b, `document.querySelector('#flow-title .term').focus()`)
		b.key("Tab", keyTab)
		require.Equal(t, "Users", b.focused().Name)
		require.Contains(t, b.focused().Hint, "wallets")
		b.key("Escape", keyEscape)
		require.Empty(t, b.focused().Hint)
	})
	t.Run("what did not change stays", func(t *testing.T) {
		eval[any](b, `window.kept = [...document.querySelectorAll('#timeline .block.final, #timeline rect.finalized, #events li')].slice(-3); window.before = Number(document.querySelector('#timeline').ariaLabel.match(/\d+/)[0])`)
		require.Equal(t, 3, eval[int](b, `window.kept.length`))
		b.wait(`Number(document.querySelector('#timeline').ariaLabel.match(/\d+/)[0]) > window.before + 1`, "time goes on")
		require.True(t, eval[bool](b, `window.kept.every((e) => e.isConnected)`))
	})
	t.Run("look-up", func(t *testing.T) {
		look := func(text string) {
			eval[any](b, `(() => { document.getElementById('hash').value = '`+text+`'; document.querySelector('#find button').click() })()`)
		}
		hash := s.node.BlockByNumber(1).Transactions()[0].Hash().Hex()
		for _, typed := range []string{hash, " " + hash[2:]} {
			look(typed)
			b.wait(`document.getElementById('found').textContent === 'It is number 1 in rollup block 1, which is finalized on JAM.'`, "a transaction is found")
		}
		look("0x" + strings.Repeat("0", 64))
		b.wait(`document.getElementById('found').textContent.includes('does not know')`, "an unknown transaction")
		look("0x12")
		b.wait(`document.getElementById('found').textContent.includes('64 hexadecimal digits')`, "no hash")
	})
	t.Run("heads", func(t *testing.T) { // the bar of 31 of 47 blocks is two thirds of the whole
		require.Equal(t, []string{"scaleX(1)", "scaleX(0.66)", "scaleX(0.553)", "", "16 behind", "21 behind"}, eval[[]string](b, `import('/static/panels.js').then(({ drawHeads }) => {
			drawHeads({ pending: 47, latest: 31, safe: 26, finalized: 26 });
			const rows = [...document.querySelectorAll('#heads > div')].slice(0, 3);
			return [...rows.map((r) => r.querySelector('i').style.transform), ...rows.map((r) => r.querySelector('.behind').textContent)];
		})`))
	})
	t.Run("replicas", func(t *testing.T) {
		require.Equal(t, []string{"http://127.0.0.1:1\nleads, epoch 3\nKill", "http://127.0.0.1:2\nfollows, 7 writes behind (this page)\nKill", "http://127.0.0.1:3\ndoes not answer"},
			eval[[]string](b, drawReplicas+`.then(() => [...document.querySelectorAll('#replicas li')].map((l) => l.innerText))`))
		eval[any](b, `document.querySelector('#replicas button').click()`)
		b.wait(`document.getElementById('cluster-said').textContent.includes('no cluster')`, "the node refuses it")
		require.Empty(t, b.complaints("status of 400"))
		eval[any](b, `import('/static/cluster.js').then(({ drawCluster }) => drawCluster(null))`)
	})
	t.Run("laboratory", func(t *testing.T) { breakThings(t, b, s) })
	t.Run("phone", func(t *testing.T) {
		b.size(390, 844, 2, true)
		b.wait(`innerWidth === 390 && document.querySelector('#timeline svg').getBoundingClientRect().width < 380`, "the page fits")
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 390, "nobody scrolls sideways")
		b.open("http://" + address.Addr())
		b.wait(isLive, "the page comes to life on a phone")
		require.Less(t, eval[float64](b, `document.getElementById('flow').getBoundingClientRect().bottom`), 500.0, "the explanation does not fill the screen")
		eval[any](b, `document.querySelector('#about summary').click()`)
		b.open("http://" + address.Addr())
		b.wait(isLive, "the page comes to life again")
		require.True(t, eval[bool](b, `document.getElementById('about').open`), "a reader has opened it")
		b.size(1280, 900, 1, false)
	})
	require.Empty(t, b.complaints(noPackage))
	restart(t, b, s, address)
}

// TestGlide: an update within a slot leaves the picture gliding to that slot.
func TestGlide(t *testing.T) {
	b := openBrowser(t)
	s := serve(t, "127.0.0.1:0", time.Hour, nil)
	b.size(1280, 900, 1, false)
	b.open(s.url)
	b.wait(isLive, "the page does not come to life")
	b.wait(`document.querySelector('#timeline .moving') !== null`, "the picture is drawn")
	require.Equal(t, []int{0, 1, 1}, eval[[]int](b, `import('/static/timeline.js').then(({ drawTimeline }) => [5, 6, 6].map((slot) => {
		drawTimeline({ slot, best: slot, final: 1, blocks: [], cores: [] }, { rows: [], more: 0 }, { slotMillis: 1000 });
		return document.querySelector('#timeline .moving').getAnimations().length;
	}))`))
}

// noPackage is in the complaint that there was no package to kill, which can come after
// the click.
const noPackage = "/lab/kill"

// breakThings uses each control and sees it work.
func breakThings(t *testing.T, b *browser, s *served) {
	move := func(id, value string) {
		eval[any](b, `(() => { const e = document.getElementById('`+id+`'); e.value = `+value+`; e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')) })()`)
	}
	shown := func() *lab.Lab { return s.node.Lab() }
	require.NotNil(t, shown())
	move("loss", "35")
	move("skip", "20")
	move("latency", "2")
	wait.Until(t, func() bool {
		snapshot, _ := s.node.Live().Snapshot()
		l := snapshot.State.Lab
		return l.Loss == 0.35 && l.Skip == 0.2 && l.Latency == 2
	}, "the controls are set")
	eval[any](b, `document.getElementById('stop').click()`)
	b.wait(`document.getElementById('stop').getAttribute('aria-pressed') === 'true'`, "finality is shown to stand still")
	eval[any](b, `document.getElementById('repair').click()`)
	b.wait(`document.getElementById('stop').getAttribute('aria-pressed') === 'false' && document.getElementById('loss').value === '0'`, "all is repaired")

	eval[any](b, `document.getElementById('reorg').click()`)
	b.wait(`document.getElementById('events').innerText.includes('JAM reorganized')`, "the reorganization is told")
	b.wait(`document.querySelectorAll('#timeline .block.off').length > 0`, "the branch that lost is drawn")

	move("latency", "4") // time to kill one
	wait.Until(t, func() bool {
		snapshot, _ := s.node.Live().Snapshot()
		return snapshot.State.Lab.Latency == 4
	}, "the latency is set")
	require.Empty(t, b.complaints())
	s.send(1)
	sent := 13
	wait.Until(t, func() bool {
		if eval[bool](b, `document.getElementById('events').innerText.includes('is made to fail')`) {
			return true
		}
		s.send(1)
		sent++
		slot := s.node.JAMSlot()
		wait.Until(t, func() bool { return s.node.JAMSlot() > slot }, "a slot")
		eval[any](b, `document.getElementById('kill').click()`)
		return false
	}, "a package is killed")
	require.Empty(t, b.complaints(noPackage))
	b.wait(`document.getElementById('events').innerText.includes('is dead')`, "its death is told")
	b.wait(count("5")+" === "+strconv.Itoa(sent), "its transactions become final all the same")
	b.wait(`document.querySelectorAll('#timeline .cross').length > 0`, "the dead version is drawn")
	b.wait(`[...document.querySelectorAll('#timeline text')].some((e) => /^v\d+ D\d$/.test(e.textContent))`, "the version and the rule by which it died are named")
	require.Empty(t, eval[[]string](b, overlaps))
}

// overlaps is a script for the labels of the picture that lie on the next one or in the picture.
const overlaps = `(() => {
	const box = (e) => e.getBoundingClientRect();
	const edge = box(document.querySelector('#timeline .view')).left;
	return [...document.querySelectorAll('#timeline > svg > g:last-child g')].flatMap((row) => {
		const texts = [...row.children].filter((e) => e.tagName === 'text' && !e.matches('.over')).sort((a, b) => box(a).left - box(b).left);
		return texts.filter((e, i) => box(e).right > (texts[i + 1] ? box(texts[i + 1]).left : edge)).map((e) => row.textContent);
	});
})()`

// restart stops the node and starts another at the same address. The page shows the interruption
// and reconnects.
func restart(t *testing.T, b *browser, s *served, address *front.Front) {
	address.LeadTo("")
	s.stop()
	b.wait(`document.getElementById('link').textContent.includes('disconnected')`, "the page says that it is disconnected")
	again := serve(t, "127.0.0.1:0", 150*time.Millisecond, nil)
	address.LeadTo(strings.TrimPrefix(again.url, "http://"))
	b.wait(isLive, "the page comes back")
	b.wait(count("5")+" === 0", "the new node has done nothing yet")
	b.wait(`document.getElementById('lab').hidden`, "it has no laboratory")
	again.send(5)
	b.wait(count("5")+" === 5", "the page goes on")
	require.Empty(t, b.complaints("net::ERR_"), "nothing but that the node was away")
}

// TestScreenshots takes pictures of the page under load and faults. JAMQ_SCREENSHOTS names the
// directory for them. docs/refnode.png is light.png and docs/refnode-dark.png is dark.png, both
// with a palette of 256 colors.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("JAMQ_SCREENSHOTS")
	if dir == "" {
		t.Skip("skipped: JAMQ_SCREENSHOTS names no directory for the pictures")
	}
	b := openBrowser(t)
	s := serve(t, "127.0.0.1:0", 500*time.Millisecond, func(cfg *lab.Config) {
		cfg.Lab, cfg.JAM.LossProbability, cfg.JAM.SkipProbability = true, 0.05, 0.08
		cfg.Spec.Cores, cfg.Spec.Validators = 3, 9
	})
	b.size(1180, 900, 1.15, false)
	b.scheme("light")
	b.open(s.url)
	b.wait(isLive, "the page does not come to life")
	b.screenshot(filepath.Join(dir, "empty.png"), true)
	stop := s.traffic(400*time.Millisecond, func(tick int) int { return 2 + tick%7 })
	b.wait(count("5")+" > 30", "it flows")
	wait.Pace(t.Context(), 6*time.Second) // for a picture that is full
	require.NoError(t, s.node.Lab().Reorg(3))
	b.wait(`document.getElementById('events').innerText.includes('JAM reorganized')`, "it is reorganized")
	wait.Until(t, func() bool { return s.node.Lab().Kill(t.Context(), 0) == nil }, "a package to kill")
	b.wait(`document.getElementById('events').innerText.includes('is dead')`, "it dies")
	b.wait(`document.querySelectorAll('#timeline .cross').length > 0`, "it is drawn")
	wait.Pace(t.Context(), 3*time.Second) // for a picture of the recovery
	b.wait(count("3")+" > 4 && "+count("4")+" > 4", "it recovers")
	b.screenshot(filepath.Join(dir, "light.png"), true)
	b.scheme("dark")
	b.screenshot(filepath.Join(dir, "dark.png"), true)
	b.size(390, 844, 2, true)
	wait.Pace(t.Context(), time.Second) // the page redraws itself
	b.screenshot(filepath.Join(dir, "phone-dark.png"), true)
	b.scheme("light")
	b.screenshot(filepath.Join(dir, "phone-top.png"), false)
	eval[any](b, `document.getElementById('timeline').scrollIntoView()`)
	b.screenshot(filepath.Join(dir, "phone-jam.png"), false)
	tap := eval[[]float64](b, `(() => { const r = [...document.querySelectorAll('#timeline .accumulated')].map((e) => e.getBoundingClientRect()).find((r) => r.x > 100 && r.x < 370 && r.y > 100 && r.y < 800); return [r.x + 2, r.y + 2] })()`)
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mousePressed", "button": "left", "clickCount": 1, "x": tap[0], "y": tap[1]})
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseReleased", "button": "left", "clickCount": 1, "x": tap[0], "y": tap[1]})
	wait.Pace(t.Context(), 100*time.Millisecond)
	b.screenshot(filepath.Join(dir, "phone-hint.png"), false)
	b.size(1180, 900, 1, false)
	stop()
	s.stop()
	b.wait(`document.getElementById('link').textContent.includes('disconnected')`, "it says that it is disconnected")
	wait.Pace(t.Context(), time.Second) // for the fading
	b.screenshot(filepath.Join(dir, "disconnected.png"), false)
}

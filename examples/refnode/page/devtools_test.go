//go:build unix

package page_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

// browser is a page in a headless Chromium, driven over its DevTools protocol.
type browser struct {
	t    *testing.T
	conn *websocket.Conn

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	errors  []string // errors that the page logged
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// chromium finds the browser, or skips the test with a message. With JAMQ_REQUIRE_CHROMIUM=1 the
// test fails instead.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Empty(t, os.Getenv("JAMQ_REQUIRE_CHROMIUM"), "JAMQ_REQUIRE_CHROMIUM is set, and there is no Chromium")
	t.Skip("skipped: there is no Chromium here")
	return ""
}

// openBrowser starts a separate Chromium for the test, on an empty page.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		// The process group contains the browser and its children.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		wait.Until(t, func() bool { return os.RemoveAll(dir) == nil }, "the browser's files are removed")
	})
	b := &browser{t: t, answers: make(map[int]chan answer)}
	var port string
	wait.Until(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		port, _, _ = strings.Cut(string(raw), "\n")
		return err == nil && port != ""
	}, "Chromium starts")
	b.attach("http://127.0.0.1:" + port)
	return b
}

// attach takes the first tab.
func (b *browser) attach(url string) {
	b.t.Helper()
	var tabs []struct {
		Type string `json:"type"`
		URL  string `json:"webSocketDebuggerUrl"`
	}
	wait.Until(b.t, func() bool {
		response, err := http.Get(url + "/json/list")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(&tabs) == nil && len(tabs) > 0
	}, "Chromium has a tab")
	i := slices.IndexFunc(tabs, func(tab struct {
		Type string `json:"type"`
		URL  string `json:"webSocketDebuggerUrl"`
	}) bool {
		return tab.Type == "page"
	})
	require.GreaterOrEqual(b.t, i, 0)
	conn, response, err := websocket.DefaultDialer.Dial(tabs[i].URL, nil)
	require.NoError(b.t, err)
	response.Body.Close()
	b.conn = conn
	read := make(chan struct{})
	go func() { defer close(read); b.read() }()
	b.t.Cleanup(func() {
		conn.Close()
		<-read
	})
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil)
	}
}

// read hands out answers and collects complaints.
func (b *browser) read() {
	for {
		var a answer
		if b.conn.ReadJSON(&a) != nil {
			return // closed
		}
		b.mu.Lock()
		switch a.Method {
		case "":
			if waiting := b.answers[a.ID]; waiting != nil {
				waiting <- a
				delete(b.answers, a.ID)
			}
		case "Runtime.exceptionThrown", "Log.entryAdded":
			b.errors = append(b.errors, string(a.Params))
		case "Runtime.consoleAPICalled":
			if strings.Contains(string(a.Params), `"type":"error"`) {
				b.errors = append(b.errors, string(a.Params))
			}
		}
		b.mu.Unlock()
	}
}

// complaints returns the page's complaints since the last call, without those that
// contain one of the expected words.
func (b *browser) complaints(expected ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.errors
	b.errors = nil
	return slices.DeleteFunc(all, func(text string) bool {
		return slices.ContainsFunc(expected, func(word string) bool { return strings.Contains(text, word) })
	})
}

func (b *browser) call(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	done := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.answers[id] = done
	err := b.conn.WriteJSON(map[string]any{"id": id, "method": method, "params": params})
	b.mu.Unlock()
	require.NoError(b.t, err)
	a := wait.Receive(b.t, done, "Chromium answers %s", method)
	require.Nil(b.t, a.Error, "%s: %+v", method, a.Error)
	return a.Result
}

// eval runs a script in the page and decodes its value into a T.
func eval[T any](b *browser, script string) (value T) {
	b.t.Helper()
	raw := b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true})
	var result struct {
		Result    struct{ Value json.RawMessage }
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	require.NoError(b.t, json.Unmarshal(raw, &result))
	require.Empty(b.t, string(result.Exception), script)
	if len(result.Result.Value) > 0 {
		require.NoError(b.t, json.Unmarshal(result.Result.Value, &value))
	}
	return value
}

// wait waits until a script is true.
func (b *browser) wait(condition, why string) {
	b.t.Helper()
	shown := ""
	wait.Until(b.t, func() bool {
		shown = eval[string](b, "document.body ? document.body.innerText : ''")
		return eval[bool](b, condition)
	}, "%s: %s\n%s", why, condition, (*text)(&shown))
}

func (b *browser) open(url string) { b.call("Page.navigate", map[string]any{"url": url}) }

// size sets the size of the window, in CSS pixels.
func (b *browser) size(width, height int, scale float64, mobile bool) {
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile})
}

// scheme sets the colours that the user prefers, light or dark.
func (b *browser) scheme(scheme string) {
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// screenshot writes a picture of the window, or of the whole page.
func (b *browser) screenshot(path string, whole bool) {
	b.t.Helper()
	var picture struct{ Data string }
	require.NoError(b.t, json.Unmarshal(b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": false}), &picture))
	raw, err := base64.StdEncoding.DecodeString(picture.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, raw, 0o644))
	b.t.Logf("%s: %d bytes", path, len(raw))
}

// text is formatted as it is when a wait fails.
type text string

func (s *text) String() string { return string(*s) }

package page_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/internal/wait"
)

// ask sends a request to the laboratory, or elsewhere.
func (s *served) ask(method, path, body string, header map[string]string) (status int, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	for key, value := range header {
		r.Header.Set(key, value)
		if key == "Host" {
			r.Host = value
		}
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, strings.TrimSpace(string(raw))
}

// lab turns the laboratory on.
func withLab(cfg *lab.Config) { cfg.Lab = true }

func TestLaboratory(t *testing.T) {
	s := serve(t, "127.0.0.1:0", 50*time.Millisecond, withLab)
	for path, cases := range map[string][]struct {
		body   string
		status int
		text   string
	}{
		"loss":    {{`{"value":0.5}`, 204, ""}, {`{"value":1.5}`, 400, "lab: loss is 1.5, want 0 to 1"}, {`{"value":"x"}`, 400, "cannot unmarshal"}, {`{"value":-0.1}`, 400, "want 0 to 1"}},
		"skip":    {{`{"value":0.2}`, 204, ""}, {`{"value":1}`, 400, "lab: skip is 1, want 0 to 0.9"}},
		"latency": {{`{"value":3}`, 204, ""}, {`{"value":0}`, 400, "1 to 12"}, {`{"value":2.5}`, 400, "whole number"}, {`{"value":1e99}`, 400, "1 to 12"}},
		"stop":    {{`{"value":true}`, 204, ""}, {`{"value":1}`, 400, "cannot unmarshal"}},
		"reorg":   {{`{"value":2}`, 204, ""}, {`{"value":6}`, 400, "lab: depth is 6, want a whole number of blocks, 1 to 5"}},
		"kill":    {{`{"value":0}`, 400, "send a transaction first"}, {`{"value":77}`, 400, "block 77 has no package"}, {`{"value":-1}`, 400, "cannot unmarshal"}},
		"dance":   {{`{"value":0}`, 404, "404"}},
	} {
		for _, x := range append(cases, []struct {
			body   string
			status int
			text   string
		}{{``, 400, `want {"value": …}`}, {`{}`, 400, `want {"value": …}`}, {`{"value":null}`, 400, `want {"value": …}`}, {`{"value":1,"more":2}`, 400, "more"}, {`{"value":` + strings.Repeat(" ", 2000) + `1}`, 400, "too large"}}...) {
			if path == "dance" {
				x.status, x.text = 404, "404"
			}
			status, text := s.ask(http.MethodPost, "/lab/"+path, x.body, nil)
			require.Equal(t, x.status, status, "%s %s: %s", path, x.body, text)
			require.Contains(t, text, x.text, "%s %s", path, x.body)
		}
	}
	wait.Until(t, func() bool {
		snapshot, _ := s.node.Live().Snapshot()
		l := snapshot.State.Lab
		return l != nil && l.Loss == 0.5 && l.Skip == 0.2 && l.Latency == 3 && l.FinalityStopped
	}, "the accepted values hold, and the refused ones changed nothing")
	status, _ := s.ask(http.MethodGet, "/lab/loss", "", nil)
	require.Equal(t, http.StatusMethodNotAllowed, status)
}

// Pages of other sites cannot use the laboratory: not by a form, not by a script, and not by
// another host name for this address.
func TestLaboratoryIsForItsOwnPageOnly(t *testing.T) {
	s := serve(t, "127.0.0.1:0", 50*time.Millisecond, withLab)
	for name, x := range map[string]struct {
		header map[string]string
		status int
	}{
		"no browser":      {nil, 204},
		"own page":        {map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"}, 204},
		"own, old":        {map[string]string{"Origin": s.url}, 204},
		"foreign":         {map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403},
		"foreign, old":    {map[string]string{"Origin": "https://evil.example"}, 403},
		"another port":    {map[string]string{"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}, 403},
		"sandboxed frame": {map[string]string{"Origin": "null"}, 403},
		"form":            {map[string]string{"Content-Type": "text/plain"}, 415},
		"rebound name":    {map[string]string{"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403},
	} {
		status, text := s.ask(http.MethodPost, "/lab/loss", `{"value":0}`, x.header)
		require.Equal(t, x.status, status, "%s: %s", name, text)
	}
}

func TestNoLaboratoryUnlessAskedFor(t *testing.T) {
	s := serve(t, "127.0.0.1:0", 50*time.Millisecond, nil)
	status, text := s.ask(http.MethodPost, "/lab/loss", `{"value":1}`, nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, text, "-lab")

	cfg := lab.DefaultConfig(jamq.Tiny(), time.Second, 1)
	cfg.Lab, cfg.JAMURL = true, "ws://127.0.0.1:1"
	require.ErrorIs(t, cfg.Validate(), node.ErrInvalidConfig)
}

// The page and its files say what they are, and let browsers load nothing from elsewhere.
func TestFiles(t *testing.T) {
	s := serve(t, "127.0.0.1:0", 50*time.Millisecond, nil)
	for path, kind := range map[string]string{"/": "text/html", "/static/style.css": "text/css", "/static/main.js": "text/javascript"} {
		response, err := http.Get(s.url + path)
		require.NoError(t, err)
		raw, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, 200, response.StatusCode)
		require.Contains(t, response.Header.Get("Content-Type"), kind)
		require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'self'")
		require.NotContains(t, string(raw), "https://", "no external files")
	}
	for _, path := range []string{"/nothing", "/static/nothing.js"} {
		status, _ := s.ask(http.MethodGet, path, "", nil)
		require.Equal(t, 404, status)
	}
}

package page_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// luminance is WCAG's relative luminance of a colour such as "#1a1c21".
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	require.Regexp(t, `^#[0-9a-f]{6}$`, colour)
	l := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// Text can be read and marks can be seen, in both modes, as WCAG 2.2 asks for (1.4.3 and 1.4.11).
func TestContrast(t *testing.T) {
	raw, err := os.ReadFile("static/style.css")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(raw), ":root {")
	require.True(t, found)
	light, after, found := strings.Cut(after, ":root {")
	require.True(t, found)
	dark, _, _ := strings.Cut(after, "\n}\n")
	variable := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6})`)
	for mode, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if _, set := colours[m[1]]; !set {
				colours[m[1]] = m[2]
			}
		}
		colours["in bars"] = "#191203"
		for _, x := range []struct {
			front, back string
			least       float64
		}{
			{"ink", "bg", 7}, {"ink", "card", 7}, {"ink", "faint", 7}, {"soft", "bg", 4.5}, {"soft", "card", 4.5}, {"soft", "faint", 4.5}, {"dead", "card", 4.5},
			{"card", "ink", 7}, {"on-bar", "finalized", 4.5}, {"in bars", "guaranteed", 4.5}, {"card", "dead", 4.5}, {"accent", "card", 3},
			{"queued", "card", 3}, {"submitted", "card", 3}, {"guaranteed", "card", 3}, {"accumulated", "card", 3}, {"finalized", "card", 3},
		} {
			a, b := luminance(t, colours[x.front]), luminance(t, colours[x.back])
			ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05)
			require.GreaterOrEqual(t, ratio, x.least, "%s: %s on %s", mode, x.front, x.back)
		}
	}
}

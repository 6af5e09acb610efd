package buildertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
)

// TestDiaryKeepsNames: a long diary has its last lines, and earlier ones only if they have a name.
func TestDiaryKeepsNames(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		d := newDiary(jamq.Tiny())
		for i := range 1000 {
			d.note("submit %s", short(fmt.Append(nil, i)))
		}
		lines := strings.Split(d.text([]string{short([]byte("12")), short([]byte("999"))}), "\n")
		require.Len(t, lines, 303)
		require.Equal(t, []string{"… 12 lines", "slot    0  submit \"12\"", "… 687 lines", "slot    0  submit \"700\""}, lines[:4])
		require.Len(t, strings.Split(d.text(nil), "\n"), 301)
	})
}

// TestLostOperationsAreInTheDiary: the diary of a run that loses operations has their answers,
// although the run goes on for hours.
func TestLostOperationsAreInTheDiary(t *testing.T) {
	c := Case[words.Body]{
		New: func() builder.Rollup[words.Body] { return &words.Rollup{Takes: true} },
		Operation: func(i int) []byte {
			return fmt.Appendf(nil, "%d is a long operation of which the diary has the beginning", i)
		},
		Executed:   words.Executed,
		Operations: 100,
	}
	log, problem := play(t, c, 0)
	require.ErrorContains(t, problem, "are not executed")
	_, lost, _ := strings.Cut(problem.Error(), "[")
	for name := range strings.SplitSeq(strings.TrimSuffix(lost, "]"), ", ") {
		require.Contains(t, log, "submit "+name+": <nil>")
	}
	require.Contains(t, log, "… ")
}

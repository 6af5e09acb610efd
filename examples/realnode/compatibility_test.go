package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
	"github.com/jamq/jamq/submit/jip2"
)

var update = flag.Bool("update", false, "write what the node answers into docs/compatibility.md")

// page is the page with the results, and the marks around the part that this test writes.
const (
	page  = "../../docs/compatibility.md"
	begin = "<!-- begin: go test ./examples/realnode -blocks 50 -update -->\n"
	end   = "<!-- end -->\n"
)

// findings has the calls that ran against the node, with the results.
type findings struct {
	results  map[string]string // of the methods of JIP-2: "answered", or the code of an error
	jip2Feed string

	// These are the results over JAMNP-S.
	submitted, state, finality, feed string
}

// answered is the result of a method that the node has answered.
const answered = "answered"

// proofs are the methods of JIP-2 whose answers a verifier needs.
var proofs = []string{"stateValue", "stateProof", "accumulationOutputs", "accumulationOutputProof", "beefyMmrProof", "beefyCommitments"}

// outcome returns the result of a call in a few words.
func outcome(err error) string {
	refused := new(jip2.Error)
	switch {
	case err == nil:
		return answered
	case errors.As(err, &refused):
		return fmt.Sprint(refused.Code)
	case errors.Is(err, jip2.ErrMalformed):
		return "malformed answer"
	}
	return "no answer"
}

// ask calls every method of JIP-2 that the client has.
func (f *findings) ask(t *testing.T, c *jip2.Client, pkg []byte) {
	t.Helper()
	best, err := c.BestBlock(wait.Context(t))
	require.NoError(t, err)
	block := jamq.HeaderHash(best.HeaderHash)
	drop := func(_ any, err error) error { return err }
	for _, m := range []struct {
		name string
		call func(context.Context) error
	}{
		{"parameters", func(ctx context.Context) error { return drop(c.Parameters(ctx)) }},
		{"bestBlock", func(ctx context.Context) error { return drop(c.BestBlock(ctx)) }},
		{"finalizedBlock", func(ctx context.Context) error { return drop(c.FinalizedBlock(ctx)) }},
		{"parent", func(ctx context.Context) error { return drop(c.Parent(ctx, block)) }},
		{"stateRoot", func(ctx context.Context) error { return drop(c.StateRoot(ctx, block)) }},
		{"stateValue", func(ctx context.Context) error {
			return drop(c.StateValue(ctx, block, statetrie.ChapterKey(statetrie.ChapterSlot)))
		}},
		{"stateProof", func(ctx context.Context) error {
			return drop(c.StateProof(ctx, block, statetrie.Query{Keys: []statetrie.Key{statetrie.ChapterKey(statetrie.ChapterSlot)}}, 1<<20))
		}},
		{"beefyRoot", func(ctx context.Context) error { return drop(c.BeefyRoot(ctx, block)) }},
		{"listServices", func(ctx context.Context) error { return drop(c.ListServices(ctx, block)) }},
		{"serviceData", func(ctx context.Context) error { return drop(c.ServiceData(ctx, block, 0)) }},
		{"serviceValue", func(ctx context.Context) error { return drop(c.ServiceValue(ctx, block, 0, []byte("key"))) }},
		{"servicePreimage", func(ctx context.Context) error { return drop(c.ServicePreimage(ctx, block, 0, common.Hash{1})) }},
		{"serviceRequest", func(ctx context.Context) error { return drop(c.ServiceRequest(ctx, block, 0, common.Hash{1}, 1)) }},
		{"workPackageStatus", func(ctx context.Context) error {
			return drop(c.WorkPackageStatus(ctx, block, jamq.PackageHash{1}, block))
		}},
		{"workReport", func(ctx context.Context) error { return drop(c.WorkReport(ctx, common.Hash{1})) }},
		{"fetchWorkPackageSegments", func(ctx context.Context) error {
			return drop(c.WorkPackageSegments(ctx, jamq.PackageHash{1}, []uint16{0}))
		}},
		{"fetchSegments", func(ctx context.Context) error { return drop(c.Segments(ctx, common.Hash{1}, []uint16{0})) }},
		{"submitWorkPackage", func(ctx context.Context) error { return c.SubmitWorkPackage(ctx, 0, pkg, nil) }},
		{"submitWorkPackageBundle", func(ctx context.Context) error { return c.SubmitWorkPackageBundle(ctx, 0, pkg) }},
		{"submitPreimage", func(ctx context.Context) error { return c.SubmitPreimage(ctx, 0, []byte{1}) }},
		{"syncState", func(ctx context.Context) error { return drop(c.SyncState(ctx)) }},
		{"accumulationOutputs", func(ctx context.Context) error { return drop(c.AccumulationOutputs(ctx, block)) }},
		{"accumulationOutputProof", func(ctx context.Context) error { return drop(c.AccumulationOutputProof(ctx, block, 0)) }},
		{"beefyMmrProof", func(ctx context.Context) error { return drop(c.BeefyMMRProof(ctx, block, 0)) }},
		{"beefyCommitments", func(ctx context.Context) error { return drop(c.BeefyCommitments(ctx, block)) }},
		{"subscribeBestBlock", func(ctx context.Context) error { return ended(c.SubscribeBestBlock(ctx)) }},
		{"subscribeFinalizedBlock", func(ctx context.Context) error { return ended(c.SubscribeFinalizedBlock(ctx)) }},
		{"subscribeSyncStatus", func(ctx context.Context) error { return ended(c.SubscribeSyncStatus(ctx)) }},
		{"subscribeStateValue", func(ctx context.Context) error {
			return ended(c.SubscribeStateValue(ctx, statetrie.ChapterKey(statetrie.ChapterSlot), false))
		}},
		{"subscribeServiceValue", func(ctx context.Context) error { return ended(c.SubscribeServiceValue(ctx, 0, []byte("key"), false)) }},
		{"subscribeWorkPackageStatus", func(ctx context.Context) error {
			return ended(c.SubscribeWorkPackageStatus(ctx, jamq.PackageHash{1}, block, false))
		}},
	} {
		f.results[m.name] = outcome(m.call(wait.Context(t)))
	}
}

// ended closes a subscription that was accepted.
func ended[T any](s *jip2.Subscription[T], err error) error {
	if err == nil {
		s.Close()
	}
	return err
}

// follow records whether the node can serve a feed over JIP-2, from the error of OpenFeed.
func (f *findings) follow(err error) {
	switch {
	case err == nil:
		f.jip2Feed = "opens"
	case errors.Is(err, jip2.ErrUnsupported):
		f.jip2Feed = "refused"
	default:
		f.jip2Feed = "fails"
	}
}

// send sends a package to the node as a guarantor, and requests a part of the state.
func (f *findings) send(t *testing.T, c *jamnps.Client, feed *jamnps.Feed, head jamq.HeaderHash, pkg []byte) {
	t.Helper()
	f.submitted, f.state, f.feed = "CE 133: yes", "CE 129: yes", "follows"
	if err := feed.Health().LastError; err != nil {
		f.feed = "fails"
	}
	if err := c.SubmitPackage(wait.Context(t), jamnps.Submission{Core: 0, Attempt: 1, Package: pkg}); err != nil {
		f.submitted = "CE 133: no"
	}
	if _, err := feed.Context(wait.Context(t), head, nil); err != nil {
		f.state = "CE 129: no"
	}
	f.finality = "CE 130: yes"
	if _, err := c.Justification(wait.Context(t), head, nil); err != nil {
		f.finality = "CE 130: no"
	}
}

// emptyPackage is a package in the encoding of the node's chain, for which it has no service.
func emptyPackage(t *testing.T, c *codec.Codec, anchor jamq.HeaderHash) []byte {
	t.Helper()
	raw, err := c.Encode(&codec.WorkPackage{Context: jamq.RefineContext{Anchor: anchor}, Items: []codec.WorkItem{{Service: 1, Payload: []byte{1}}}})
	require.NoError(t, err)
	return raw
}

// version returns the version of the node's package.
func version(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("node/package.json")
	require.NoError(t, err)
	var p struct{ Dependencies map[string]string }
	require.NoError(t, json.Unmarshal(raw, &p))
	return p.Dependencies["@typeberry/jam"]
}

// String returns the part of the page, without the date.
func (f *findings) text(version, date string) string {
	var b strings.Builder
	var answers, refusals, proved []string
	for _, name := range slices.Sorted(maps.Keys(f.results)) {
		switch result := f.results[name]; {
		case result != answered:
			refusals = append(refusals, fmt.Sprintf("`%s` (%s)", name, result))
			continue
		case slices.Contains(proofs, name):
			proved = append(proved, "`"+name+"`")
		}
		answers = append(answers, "`"+name+"`")
	}
	submit := "accepted"
	if result := f.results["submitWorkPackage"]; result != answered {
		submit = "refused (" + result + ")"
	}
	if proved == nil {
		proved = []string{"none"}
	}
	b.WriteString("| node | methods | feed | submit | state, proofs | date |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| typeberry %s, JIP-2 | %d of %d | %s | %s | %s | %s |\n", version, len(answers), len(f.results), f.jip2Feed, submit, strings.Join(proved, ", "), date)
	fmt.Fprintf(&b, "| typeberry %s, JAMNP-S | | %s | %s | %s | %s |\n\n", version, f.feed, f.submitted, f.state+", "+f.finality, date)
	b.WriteString(wrap("The node answered these methods of JIP-2: " + strings.Join(answers, ", ") + "."))
	b.WriteString("\n" + wrap("It refused these, with the code of its error: "+strings.Join(refusals, ", ")+"."))
	return b.String()
}

// wrap breaks a text into lines.
func wrap(text string) string {
	var b strings.Builder
	length := 0
	for _, word := range strings.Fields(text) {
		if length+1+len(word) > 100 {
			b.WriteString("\n")
			length = 0
		} else if length > 0 {
			b.WriteString(" ")
			length++
		}
		b.WriteString(word)
		length += len(word)
	}
	return b.String() + "\n"
}

// split returns the page before the part that this test writes, that part, and the rest.
func split(t *testing.T) (before, have, after string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), begin)
	require.True(t, found)
	have, after, found = strings.Cut(rest, end)
	require.True(t, found)
	return before, have, after
}

// cells returns the cells of a row of the table on the page: 2 is JIP-2, and 3 is JAMNP-S.
func cells(t *testing.T, part string, row int) []string {
	t.Helper()
	lines := strings.Split(part, "\n")
	require.Greater(t, len(lines), row)
	out := strings.Split(strings.Trim(lines[row], "| "), "|")
	require.Len(t, out, 6)
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// The results on the page determine the whole part of the page that this test writes. The test with
// the node compares them with the answers of the node.
func TestPage(t *testing.T) {
	_, have, _ := split(t)
	f := &findings{results: map[string]string{}}
	answers, refusals, found := strings.Cut(have, "\nIt refused these")
	require.True(t, found)
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(answers[strings.Index(answers, "\n\n"):], -1) {
		f.results[m[1]] = answered
	}
	for _, m := range regexp.MustCompile("`(\\w+)`\\s\\(([^)]*)\\)").FindAllStringSubmatch(refusals, -1) {
		f.results[m[1]] = m[2]
	}
	rpc, net := cells(t, have, 2), cells(t, have, 3)
	f.jip2Feed, f.feed, f.submitted = rpc[2], net[2], net[3]
	f.state, f.finality, found = strings.Cut(net[4], ", ")
	require.True(t, found)
	require.Equal(t, f.text(version(t), rpc[5]), have)

	for _, name := range append(proofs, "submitWorkPackage") {
		require.Contains(t, f.results, name)
		f.results[name] = answered
	}
	f.follow(nil)
	rpc = cells(t, f.text("1", "2"), 2)
	require.Equal(t, []string{"opens", "accepted", "`accumulationOutputProof`, `accumulationOutputs`, `beefyCommitments`, `beefyMmrProof`, `stateProof`, `stateValue`"}, rpc[2:5])
}

// check compares the page with the findings, or writes them. The date is that of the last -update.
func (f *findings) check(t *testing.T) {
	t.Helper()
	before, have, after := split(t)
	if *update {
		text := before + begin + f.text(version(t), time.Now().UTC().Format(time.DateOnly)) + end + after
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	date := cells(t, have, 2)[5]
	require.Equal(t, f.text(version(t), date), have, "the node does something else than the page says")
}

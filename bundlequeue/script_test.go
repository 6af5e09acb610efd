package bundlequeue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

var update = flag.Bool("update", false, "write what the scripts in testdata now give")

// TestScripts runs the scripts in testdata. Each describes events of a queue
// and, below each ----, the effects. A script begins with a line of settings;
// blocks of lines are separated by empty lines. The flag -update rewrites the
// effects; review the difference.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			have := playScript(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(have), 0o644))
			}
			require.Equal(t, string(want), have)
		})
	}
}

// playScript returns the script with the effects that its lines have now.
func playScript(t *testing.T, script string) string {
	t.Helper()
	var s *scriptScene
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		input, _, _ := strings.Cut(block, "\n----")
		fmt.Fprintf(&out, "%s\n----\n", input)
		for line := range strings.Lines(input) {
			words := strings.Fields(line)
			switch {
			case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			case words[0] == "chain":
				s = newScriptScene(t, words[1:])
			default:
				s.play(words)
			}
		}
		for _, line := range s.out {
			fmt.Fprintln(&out, s.readable(line))
		}
		s.out = nil
	}
	return out.String()
}

// scriptScene is a queue whose blocks and packages have names: b3, 1v2.
type scriptScene struct {
	t        *testing.T
	q        *Queue
	now      time.Time
	builds   []Build
	sends    []Send
	slots    map[string]jamq.Slot
	packages map[string]jamq.PackageHash
	out      []string
}

func newScriptScene(t *testing.T, options []string) *scriptScene {
	t.Helper()
	cfg := DefaultConfig(jamq.Tiny())
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "cores":
			cfg.Cores = nil
			for core := range n {
				cfg.Cores = append(cfg.Cores, jamq.CoreIndex(core))
			}
		case "versions":
			cfg.MaxVersionRetries = n - 1
		case "sends":
			cfg.MaxSubmitRetries = n - 1
		case "depth":
			cfg.MaxQueueDepth = n
		default:
			t.Fatalf("unknown option %q", o)
		}
	}
	q, err := New(cfg, jamq.Block{Hash: nameHash[jamq.HeaderHash]("b0")})
	require.NoError(t, err)
	s := &scriptScene{t: t, q: q, now: jamq.CommonEra(), slots: map[string]jamq.Slot{"b0": 0}, packages: map[string]jamq.PackageHash{}}
	for i := 1; i <= 8; i++ { // so that anchors of all ages exist
		s.play([]string{"import", fmt.Sprint("b", i)})
	}
	s.out = nil
	return s
}

// nameHash makes a hash whose first bytes spell a name of at most four letters.
func nameHash[H ~[32]byte](name string) (h H) {
	a := [32]byte{}
	copy(a[:4], name+"    ")
	copy(a[4:], name)
	return H(a)
}

// readable replaces the hashes of blocks by names.
func (s *scriptScene) readable(line string) string {
	for name := range s.slots {
		h := nameHash[jamq.HeaderHash](name)
		line = strings.ReplaceAll(line, ":"+h.Short(), ":"+name)
	}
	return line
}

func (s *scriptScene) step(ev Event) {
	s.t.Helper()
	effects, err := s.q.Step(s.now, ev)
	if err != nil {
		s.out = append(s.out, "refused: "+err.Error())
	}
	for _, e := range effects {
		line := e.String()
		switch e := e.(type) {
		case Build:
			s.builds = append(s.builds, e)
			line = s.withPrerequisites(line, e.Prerequisites)
		case Send:
			s.sends = append(s.sends, e)
		}
		s.out = append(s.out, line)
	}
	require.NoError(s.t, s.q.check())
}

func (s *scriptScene) withPrerequisites(line string, needs []jamq.PackageHash) string {
	line, _, _ = strings.Cut(line, " needs=")
	var names []string
	for name, pkg := range s.packages {
		if slices.Contains(needs, pkg) {
			names = append(names, name)
		}
	}
	return line + " prerequisites=(" + strings.Join(names, " ") + ")"
}

// play plays one line.
func (s *scriptScene) play(words []string) {
	s.t.Helper()
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		require.NoError(s.t, err, "%q", words)
		return n
	}
	switch words[0] {
	case "enqueue":
		s.step(Enqueue{Number: number(1), Bundle: []byte(words[1])})
	case "reserve":
		s.step(Reserve{Number: number(1)})
	case "release":
		s.step(Release{Number: number(1)})
	case "rekey":
		s.step(Rekey{From: number(1), To: number(2)})
	case "retry":
		s.step(Retry{Number: number(1)})
	case "import":
		s.importBlock(words[1], words[2:])
	case "best":
		s.step(Imported{Block: jamq.Block{Hash: nameHash[jamq.HeaderHash](words[1])}, Best: nameHash[jamq.HeaderHash](words[1])})
	case "finalize":
		s.step(FinalizedBlock{Hash: nameHash[jamq.HeaderHash](words[1])})
	case "wait":
		d, err := time.ParseDuration(words[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
		s.step(Tick{})
	case "build", "fail-build", "sent", "fail-send":
		s.answer(words[0])
	case "run":
		for len(s.builds)+len(s.sends) > 0 {
			s.answer("build")
			s.answer("sent")
		}
	default:
		s.t.Fatalf("unknown line %q", words)
	}
}

// importBlock imports a block: parent=b3 (default: the one numbered before), slot=9 (default: one
// after the parent's), report=1v1@0, available=0, condemn=1v1, best=b3 (default: the new one).
func (s *scriptScene) importBlock(name string, options []string) {
	s.t.Helper()
	n, err := strconv.Atoi(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz"))
	require.NoError(s.t, err)
	parent, best := fmt.Sprint("b", n-1), name
	b := jamq.Block{Hash: nameHash[jamq.HeaderHash](name)}
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "parent":
			parent = value
		case "best":
			best = value
		case "slot":
			slot, err := strconv.Atoi(value)
			require.NoError(s.t, err)
			b.Slot = jamq.Slot(slot)
		case "report":
			for r := range strings.SplitSeq(value, ",") {
				pkg, core, _ := strings.Cut(r, "@")
				c, err := strconv.Atoi(core)
				require.NoError(s.t, err)
				report := jamq.Report{Hash: common.Hash(s.packages[pkg]), Package: s.packages[pkg], Core: jamq.CoreIndex(c)}
				if v := s.q.versions[s.packages[pkg]]; v != nil {
					report.Prerequisites = v.trace.Prerequisites()
				}
				b.Reported = append(b.Reported, report)
			}
		case "available":
			for c := range strings.SplitSeq(value, ",") {
				core, err := strconv.Atoi(c)
				require.NoError(s.t, err)
				b.Available = append(b.Available, jamq.CoreIndex(core))
			}
		case "condemn":
			b.Condemned = append(b.Condemned, common.Hash(s.packages[value]))
		default:
			s.t.Fatalf("unknown option %q", o)
		}
	}
	b.Parent = nameHash[jamq.HeaderHash](parent)
	if b.Slot == 0 {
		b.Slot = s.slots[parent] + 1
	}
	s.slots[name] = b.Slot
	s.now = maxTime(s.now, jamq.NewSlotClock(jamq.Tiny()).Start(b.Slot))
	s.step(Imported{Block: b, Best: nameHash[jamq.HeaderHash](best)})
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// answer answers all builds or sends that are open.
func (s *scriptScene) answer(how string) {
	if strings.HasSuffix(how, "build") {
		builds := s.builds
		s.builds = nil
		for _, b := range builds {
			if how == "fail-build" {
				s.step(BuildFailed{Ticket: b.Ticket})
				continue
			}
			name := fmt.Sprintf("%sv%d", b.Bundle, b.Version)
			s.packages[name] = nameHash[jamq.PackageHash](name)
			at := s.slots[strings.TrimRight(string(b.Anchor.Hash[:4]), " ")]
			s.step(Built{Ticket: b.Ticket, Package: s.packages[name], Bundle: b.Bundle, Context: jamq.RefineContext{
				Anchor: b.Anchor.Hash, LookupAnchorSlot: at, Prerequisites: b.Prerequisites,
			}})
		}
		return
	}
	sends := s.sends
	s.sends = nil
	for _, e := range sends {
		s.step(Sent{Ticket: e.Ticket, OK: how == "sent"})
	}
}

package jip2server_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// socket is a client that knows nothing but JSON.
type socket struct {
	t    *testing.T
	ws   *websocket.Conn
	id   int
	seen []map[string]any // notifications that came before an answer
}

func start(t *testing.T, change func(*jip2server.Config)) (*jip2server.Server, *socket) {
	t.Helper()
	cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
	cfg.Chain.Genesis = genesis(t, 9)
	if change != nil {
		change(&cfg)
	}
	s, err := jip2server.New(cfg)
	require.NoError(t, err)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	t.Cleanup(s.Cut)
	return s, connect(t, web.URL)
}

// authorizer is that of packages of tests, whose code hash is zero.
var authorizer = new(codec.WorkPackage).Authorizer()

// genesis returns the genesis state of a chain with services.
func genesis(t *testing.T, services ...jamq.ServiceID) service.State {
	t.Helper()
	all := service.State{}
	for _, id := range services {
		entries, err := service.Genesis{Service: id, Authorizer: authorizer}.Entries()
		require.NoError(t, err)
		maps.Copy(all, entries)
	}
	return all
}

// header is that of a rollup's block 1.
var header = service.EncodeHeader(proof.Commitment{Number: 1, PostRoot: common.Hash{1}})

func connect(t *testing.T, url string) *socket {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial(strings.Replace(url, "http", "ws", 1), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ws.Close() })
	return &socket{t: t, ws: ws}
}

func (s *socket) next() map[string]any {
	s.t.Helper()
	var m map[string]any
	require.NoError(s.t, s.ws.ReadJSON(&m))
	return m
}

// ask sends a request and returns its answer.
func (s *socket) ask(method string, params ...any) map[string]any {
	s.t.Helper()
	if params == nil {
		params = []any{}
	}
	s.id++
	require.NoError(s.t, s.ws.WriteJSON(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params}))
	for {
		m := s.next()
		if m["method"] == nil {
			require.EqualValues(s.t, s.id, m["id"])
			return m
		}
		s.seen = append(s.seen, m)
	}
}

func (s *socket) result(method string, params ...any) any {
	s.t.Helper()
	m := s.ask(method, params...)
	require.Nil(s.t, m["error"], "%v", m)
	return m["result"]
}

// told returns the next notification.
func (s *socket) told() map[string]any {
	s.t.Helper()
	if len(s.seen) > 0 {
		m := s.seen[0]
		s.seen = s.seen[1:]
		return m["params"].(map[string]any)
	}
	return s.next()["params"].(map[string]any)
}

func base(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func step(t *testing.T, s *jip2server.Server, n int) (u jamtest.Update) {
	t.Helper()
	for range n {
		var err error
		u, err = s.Step()
		require.NoError(t, err)
	}
	return u
}

// workPackage returns an encoded package with block 1 of the rollup, anchored one block behind the
// best.
func workPackage(t *testing.T, s *jip2server.Server, content string) ([]byte, jamq.RefineContext) {
	t.Helper()
	var context jamq.RefineContext
	s.View(func(c *jamtest.Chain) {
		var err error
		context, err = c.Context(1)
		require.NoError(t, err)
	})
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	raw, err := c.Encode(&codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: 9, Payload: append(bytes.Clone(header), content...), AccumulateGas: 10}}})
	require.NoError(t, err)
	return raw, context
}

// The life of a package as a node tells it, in the very JSON.
func TestLifeOfAPackage(t *testing.T) {
	s, c := start(t, nil)
	genesis := c.result("bestBlock").(map[string]any)
	u := step(t, s, 3)
	best := c.result("bestBlock").(map[string]any)
	require.Equal(t, map[string]any{"header_hash": base(u.Best[:]), "slot": 3.0}, best)
	parent := c.result("parent", best["header_hash"]).(map[string]any)
	require.EqualValues(t, 2, parent["slot"])
	require.Equal(t, "Completed", c.result("syncState").(map[string]any)["status"])
	require.EqualValues(t, 2, c.result("parameters").(map[string]any)["V1"].(map[string]any)["core_count"])

	raw, context := workPackage(t, s, "block 1")
	hash := blake2b.Sum256(raw)
	anchor := base(context.Anchor[:])
	require.Equal(t, base(context.StateRoot[:]), c.result("stateRoot", anchor))
	require.Equal(t, base(context.BeefyRoot[:]), c.result("beefyRoot", anchor))
	status := func() map[string]any {
		return c.result("workPackageStatus", c.result("bestBlock").(map[string]any)["header_hash"], base(hash[:]), anchor).(map[string]any)
	}
	require.Equal(t, map[string]any{"Reportable": map[string]any{"remaining_blocks": 7.0}}, status())
	require.Nil(t, c.result("submitWorkPackage", 1, base(raw), []string{}))
	step(t, s, 1)
	reported := status()["Reported"].(map[string]any)
	require.EqualValues(t, 1, reported["core"])
	require.EqualValues(t, 4, reported["reported_in"].(map[string]any)["slot"])
	u = step(t, s, 1)
	ready := status()["Ready"].(map[string]any)
	require.Equal(t, base(u.Best[:]), ready["ready_in"].(map[string]any)["header_hash"])
	require.Equal(t, reported["report_hash"], ready["report_hash"])

	best = c.result("bestBlock").(map[string]any)
	require.Equal(t, base(binary.LittleEndian.AppendUint32(nil, 5)), c.result("serviceValue", best["header_hash"], 9, base(service.MarkKey(hash))))
	require.Equal(t, base(binary.LittleEndian.AppendUint64(nil, 1)), c.result("serviceValue", best["header_hash"], 9, base(service.CountKey())))
	require.Equal(t, base(append(hash[:], header...)), c.result("serviceValue", best["header_hash"], 9, base(service.EntryKey(0))))
	require.Nil(t, c.result("serviceValue", best["header_hash"], 9, base(service.EntryKey(1))))
	require.Nil(t, c.result("serviceValue", genesis["header_hash"], 9, base(service.MarkKey(hash))), "before it")
	for _, key := range [][]byte{service.MarkKey(hash), service.EntryKey(0), service.CountKey()} {
		require.Nil(t, c.result("serviceValue", best["header_hash"], 10, base(key)), "another service")
	}
	var account []byte
	s.View(func(c *jamtest.Chain) {
		var err error
		account, err = c.Account(9, u.Best)
		require.NoError(t, err)
	})
	require.Equal(t, base(account), c.result("serviceData", best["header_hash"], 9))
	require.EqualValues(t, 5, codec.LastAccumulation(account))
	require.Nil(t, c.result("serviceData", best["header_hash"], 10))
}

// A forged package never changes the root of the rollup, and the next honest one does.
func TestForgedPayloadNeverChangesTheRoot(t *testing.T) {
	s, c := start(t, nil)
	step(t, s, 3)
	encoder, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	send := func(payload []byte, change func(*codec.WorkPackage)) {
		t.Helper()
		_, context := workPackage(t, s, "")
		p := codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: 9, Payload: payload}}}
		change(&p)
		raw, err := encoder.Encode(&p)
		require.NoError(t, err)
		c.result("submitWorkPackage", 0, base(raw), []string{})
		step(t, s, 3)
		hash := jamq.PackageHash(blake2b.Sum256(raw))
		s.View(func(chain *jamtest.Chain) {
			status, err := chain.Status(hash, chain.Best().Hash)
			require.NoError(t, err)
			require.Equal(t, jamtest.Accumulated, status.Stage)
		})
	}
	root := func() common.Hash {
		best := c.result("bestBlock").(map[string]any)["header_hash"]
		last, err := service.Last(func(key string) []byte {
			value := c.result("serviceValue", best, 9, base([]byte(key)))
			if value == nil {
				return nil
			}
			return unbase(t, value)
		})
		require.NoError(t, err)
		return last.PostRoot
	}
	post := common.Hash{1}
	none := func(*codec.WorkPackage) {}
	send(header, func(p *codec.WorkPackage) { p.AuthCodeHash[0]++ })
	send(header, func(p *codec.WorkPackage) { p.AuthorizerConfig = []byte("another builder") })
	send(header[1:], none)
	send(service.EncodeHeader(proof.Commitment{PostRoot: post}), none)
	send(service.EncodeHeader(proof.Commitment{Number: 1, PreRoot: common.Hash{2}, PostRoot: post}), none)
	send(service.EncodeHeader(proof.Commitment{Number: 2, PostRoot: post}), none)
	send(service.EncodeHeader(proof.Commitment{Number: 1 << 40, PostRoot: post}), none)
	send(header, func(p *codec.WorkPackage) { p.Items[0].Service = 10 })
	require.Zero(t, root())
	send(header, none)
	require.Equal(t, post, root())
}

// A guarantor refuses a package that names the authorizer of package service without its builder's
// signature.
func TestUnsignedPackage(t *testing.T) {
	signer, err := service.NewSigner(codec.V072, ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(t, err)
	stranger, err := service.NewSigner(codec.V072, ed25519.NewKeyFromSeed(append(make([]byte, 31), 1)))
	require.NoError(t, err)
	s, c := start(t, func(cfg *jip2server.Config) {
		g, err := service.Genesis{Service: 9}.SignedBy(signer)
		require.NoError(t, err)
		cfg.Chain.Genesis, err = g.Entries()
		require.NoError(t, err)
	})
	step(t, s, 3)
	encoder, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	_, context := workPackage(t, s, "")
	var own codec.WorkPackage
	send := func(by *service.Signer, change func(*codec.WorkPackage)) any {
		own = codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: 9, Payload: header}}}
		require.NoError(t, by.Sign(encoder, &own))
		change(&own)
		raw, err := encoder.Encode(&own)
		require.NoError(t, err)
		return c.ask("submitWorkPackage", 0, base(raw), []string{})["error"]
	}
	for _, change := range []func(*codec.WorkPackage){
		func(p *codec.WorkPackage) { p.Authorization = nil },
		func(p *codec.WorkPackage) { p.Authorization[7]++ },
		func(p *codec.WorkPackage) { p.Items[0].Payload = header[1:] },
		func(p *codec.WorkPackage) { p.Items[0].Service++ },
	} {
		require.Contains(t, send(signer, change).(map[string]any)["message"], "unauthorized")
	}
	none := func(*codec.WorkPackage) {}
	require.Contains(t, send(stranger, func(p *codec.WorkPackage) { p.AuthorizerConfig = signer.Public() }).(map[string]any)["message"], "unauthorized")
	require.Nil(t, send(stranger, none), "its own authorizer lets it pass, and the service ignores it")
	step(t, s, 4)
	value := func() any {
		return c.result("serviceValue", c.result("bestBlock").(map[string]any)["header_hash"], 9, base(service.CountKey()))
	}
	require.Nil(t, value())
	require.Nil(t, send(signer, none))
	step(t, s, 4)
	require.NotNil(t, value())
}

func TestFailedPackage(t *testing.T) {
	s, c := start(t, func(cfg *jip2server.Config) { cfg.Chain.UnavailableProbability = 1 })
	step(t, s, 3)
	raw, context := workPackage(t, s, "unavailable")
	hash := blake2b.Sum256(raw)
	c.result("submitWorkPackage", 0, base(raw), []string{})
	u := step(t, s, 6)
	lost := c.result("workPackageStatus", base(u.Best[:]), base(hash[:]), base(context.Anchor[:])).(map[string]any)
	require.Contains(t, lost["Failed"], "timed out")
	u = step(t, s, 3)
	other := c.result("workPackageStatus", base(u.Best[:]), base(make([]byte, 32)), base(context.Anchor[:])).(map[string]any)
	require.Contains(t, other["Failed"], "too old")
}

// In a notification the error is a string, not the object of an answer.
func TestSubscriptionError(t *testing.T) {
	s, c := start(t, func(cfg *jip2server.Config) { cfg.KeepStates = 1 })
	step(t, s, 3)
	id := c.result("subscribeServiceValue", 9, base(service.CountKey()), true)
	told := c.told()
	require.Equal(t, id, told["subscription"])
	require.IsType(t, "", told["error"])
	require.NotEmpty(t, told["error"])
	require.NotContains(t, told, "result")
}

func TestSubscriptions(t *testing.T) {
	s, c := start(t, nil)
	step(t, s, 3)
	id := c.result("subscribeBestBlock")
	first := c.told()
	require.Equal(t, id, first["subscription"])
	require.EqualValues(t, 3, first["result"].(map[string]any)["slot"])
	raw, context := workPackage(t, s, "followed")
	hash := blake2b.Sum256(raw)
	value := c.result("subscribeServiceValue", 9, base(service.MarkKey(hash)), true)
	require.Nil(t, c.told()["result"].(map[string]any)["value"])
	c.result("subscribeWorkPackageStatus", base(hash[:]), base(context.Anchor[:]), false)
	require.NotNil(t, c.told()["result"].(map[string]any)["value"].(map[string]any)["Reportable"])
	c.result("submitWorkPackage", 0, base(raw), []string{})
	require.Equal(t, true, c.result("unsubscribeBestBlock", id))
	require.NotNil(t, c.ask("unsubscribeBestBlock", id)["error"], "twice")
	step(t, s, 4)
	for {
		u := c.told()
		if u["subscription"] == value && u["result"].(map[string]any)["value"] != nil {
			break
		}
	}
}

func TestBundles(t *testing.T) {
	s, c := start(t, nil)
	step(t, s, 3)
	var context jamq.RefineContext
	s.View(func(c *jamtest.Chain) { context, _ = c.Context(1) })
	data := []byte("extrinsic")
	k, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	raw, err := k.Encode(&codec.WorkPackage{Context: context, Items: []codec.WorkItem{{
		Service: 9, Payload: header, Imports: []codec.Import{{Index: 1}}, Extrinsics: []codec.Extrinsic{{Hash: blake2b.Sum256(data), Length: uint32(len(data))}},
	}}})
	require.NoError(t, err)
	bundle := append(append(append([]byte{}, raw...), data...), make([]byte, 4104)...)
	bundle = append(append(bundle, 1), make([]byte, 32)...)
	for name, bad := range map[string][]byte{
		"cut": bundle[:len(bundle)-1], "longer": append(bundle, 0), "other data": append(append(append([]byte{}, raw...), "Extrinsic"...), bundle[len(raw)+9:]...), "nothing": {},
	} {
		require.NotNil(t, c.ask("submitWorkPackageBundle", 0, base(bad))["error"], name)
	}
	require.NotNil(t, c.ask("submitWorkPackage", 0, base(raw), []string{})["error"], "an extrinsic is missing")
	require.Nil(t, c.result("submitWorkPackageBundle", 0, base(bundle)))
	require.Nil(t, c.result("submitWorkPackage", 0, base(raw), []string{base(data)}))
	hash := blake2b.Sum256(raw)
	u := step(t, s, 2)
	require.NotNil(t, c.result("serviceValue", base(u.Best[:]), 9, base(hash[:])))
}

func TestBadRequests(t *testing.T) {
	s, c := start(t, func(cfg *jip2server.Config) { cfg.Missing = []string{"workPackageStatus"} })
	step(t, s, 3)
	zero := base(make([]byte, 32))
	for _, x := range []struct {
		method string
		params []any
		code   int
	}{
		{"nonsense", nil, -32601}, {"statistics", []any{zero}, -32601}, {"workPackageStatus", []any{zero, zero, zero}, -32601}, {"subscribeNonsense", nil, -32601},
		{"parent", nil, -32602}, {"parent", []any{7}, -32602}, {"parent", []any{"AAAA"}, -32602}, {"bestBlock", []any{1}, -32602},
		{"parent", []any{zero}, 1}, {"stateRoot", []any{zero}, 1}, {"serviceValue", []any{zero, 1, ""}, 1},
		{"submitWorkPackage", []any{0, base([]byte("garbage")), []string{}}, 0}, {"submitWorkPackage", []any{-1, "", []string{}}, -32602},
		{"unsubscribeBestBlock", []any{99}, -32602},
	} {
		answer := c.ask(x.method, x.params...)
		require.NotNil(t, answer["error"], "%v", x)
		require.EqualValues(t, x.code, answer["error"].(map[string]any)["code"], "%v", x)
	}
	raw, _ := workPackage(t, s, "x")
	require.EqualValues(t, 0, c.ask("submitWorkPackage", 2, base(raw), []string{})["error"].(map[string]any)["code"], "no such core")
	require.NoError(t, c.ws.WriteMessage(websocket.TextMessage, []byte("{")))
	require.EqualValues(t, -32700, c.next()["error"].(map[string]any)["code"])
	require.NoError(t, c.ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"bestBlock"}`)))
	require.EqualValues(t, -32600, c.next()["error"].(map[string]any)["code"])
	require.Equal(t, 1, s.Connections())
	require.Equal(t, 3, s.Calls("submitWorkPackage"))
}

// The same journal gives the same chain, to the hash of its best block, after any step.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	open := func() (*jip2server.Server, *journal.File) {
		file, err := journal.Open(path)
		require.NoError(t, err)
		cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
		cfg.Journal = file
		cfg.Chain.LossProbability, cfg.Chain.ForeignLoad, cfg.Chain.SkipProbability = 0.3, 0.5, 0.2
		s, err := jip2server.New(cfg)
		require.NoError(t, err)
		return s, file
	}
	want := ""
	for i := range 12 {
		s, file := open()
		have := ""
		s.View(func(c *jamtest.Chain) { have = fmt.Sprint(c.Slot(), c.Best()) })
		if i > 0 {
			require.Equal(t, want, have, "restart %d", i)
		}
		web := httptest.NewServer(s)
		step(t, s, 3)
		raw, _ := workPackage(t, s, fmt.Sprint("bundle ", i))
		c := connect(t, web.URL)
		c.result("submitWorkPackage", i%2, base(raw), []string{})
		c.result("submitWorkPackage", i%2, base(raw), []string{})
		s.Cut()
		web.Close()
		s.View(func(c *jamtest.Chain) { want = fmt.Sprint(c.Slot(), c.Best()) })
		require.NoError(t, file.Close())
	}
	file, err := journal.Open(path)
	require.NoError(t, err)
	defer file.Close()
	cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 8))
	cfg.Journal = file
	_, err = jip2server.New(cfg)
	require.ErrorIs(t, err, jip2server.ErrJournal, "another seed")
}

// A journal is replayed under the configuration under which it was written. Another one would make
// another chain, so it is refused by the name of the field.
func TestRestartWithAnotherConfiguration(t *testing.T) {
	script, err := jamtest.ParseScript("at 9 fork 1")
	require.NoError(t, err)
	for want, change := range map[string]func(*jamtest.Config){
		"":                               func(*jamtest.Config) {},
		"Seed is 8, want 7":              func(c *jamtest.Config) { c.Seed = 8 },
		"LossProbability is 0.1, want 0": func(c *jamtest.Config) { c.LossProbability = 0.1 },
		"FinalityLag is 3, want 2; SkipProbability is 0.2":       func(c *jamtest.Config) { c.SkipProbability, c.FinalityLag = 0.2, 3 },
		`Script is "at 9 fork 1`:                                 func(c *jamtest.Config) { c.Script = script },
		`Genesis is "0x`:                                         func(c *jamtest.Config) { c.Genesis = genesis(t, 9) },
		"Punished is [3], want null":                             func(c *jamtest.Config) { c.Punished = []int{3} },
		`"SlotDuration":1000000000`:                              func(c *jamtest.Config) { c.Spec.SlotDuration = time.Second },
		"ForkProbability is 0.1, want 0; MaxForkDepth is 1, wan": func(c *jamtest.Config) { c.ForkProbability, c.MaxForkDepth = 0.1, 1 },
	} {
		memory := new(journal.Memory)
		open := func(change func(*jamtest.Config)) error {
			cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
			cfg.Journal = memory
			change(&cfg.Chain)
			_, err := jip2server.New(cfg)
			return err
		}
		require.NoError(t, open(func(*jamtest.Config) {}))
		err := open(func(c *jamtest.Config) { change(c); c.StartSlot, c.Retention = 99, 1000 })
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, jip2server.ErrJournal)
		require.ErrorContains(t, err, want)
	}
}

func ExampleNew() {
	s, err := jip2server.New(jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7)))
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.Cut()
	if _, err := s.Step(); err != nil {
		fmt.Println(err)
		return
	}
	ws, _, err := websocket.DefaultDialer.Dial(strings.Replace(web.URL, "http", "ws", 1), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ws.Close()
	_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"bestBlock","params":[]}`))
	var answer struct {
		Result struct{ Slot int }
	}
	_, raw, err := ws.ReadMessage()
	fmt.Println(json.Unmarshal(raw, &answer), err, "slot", answer.Result.Slot)
	// Output: <nil> <nil> slot 1
}

// Whatever a client asks, the server answers and goes on.
func FuzzRequest(f *testing.F) {
	s, err := jip2server.New(jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7)))
	require.NoError(f, err)
	web := httptest.NewServer(s)
	f.Cleanup(web.Close)
	f.Cleanup(s.Cut)
	for range 3 {
		_, err := s.Step()
		require.NoError(f, err)
	}
	zero := base(make([]byte, 32))
	for _, seed := range [][2]string{
		{"parent", `["` + zero + `"]`}, {"submitWorkPackage", `[0,"",[]]`}, {"submitWorkPackageBundle", `[0,"AAAA"]`}, {"serviceValue", `["` + zero + `",1,""]`},
		{"subscribeServiceValue", `[1,"",true]`}, {"unsubscribeBestBlock", `[1]`}, {"workPackageStatus", `[null,{},[]]`}, {"", `[`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, method, params string) {
		c := connect(t, web.URL)
		name, err := json.Marshal(method)
		require.NoError(t, err)
		require.NoError(t, c.ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}`, name, params)))
		c.next()
		require.NotEmpty(t, c.result("bestBlock"))
		require.NoError(t, c.ws.Close())
	})
}

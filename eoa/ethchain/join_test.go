package ethchain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/internal/repeat"
)

// provider is one endpoint of a simulated chain, with its own troubles. It is
// used in a bubble.
type provider struct {
	*eoatest.Chain
	mu     sync.Mutex
	down   bool          // every call fails
	hangs  bool          // no call is answered
	busy   time.Duration // asks to wait
	lag    uint64        // blocks behind
	says   string        // refusal of each send; empty: passes it on
	asked  int           // calls of all kinds
	looked int
}

var errDown = errors.New("connection refused")

// trouble returns the error of a call.
func (p *provider) trouble(ctx context.Context) error {
	p.mu.Lock()
	p.asked++
	hangs, down, busy := p.hangs, p.down, p.busy
	p.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	case down:
		return errDown
	case busy > 0:
		return &eoa.BusyError{RetryAfter: busy, Err: errDown}
	}
	return nil
}

func (p *provider) set(f func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func (p *provider) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	if err := p.trouble(ctx); err != nil {
		return eoa.Look{}, err
	}
	l, err := p.Chain.Look(ctx, a)
	p.set(func(p *provider) { l.Number -= min(l.Number, p.lag); p.looked++ })
	return l, err
}

func (p *provider) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return p.Look(ctx, a)
}

func (p *provider) Ask(ctx context.Context, q eoa.Questions) (eoa.Answers, error) {
	if err := p.trouble(ctx); err != nil {
		return eoa.Answers{}, err
	}
	return p.Chain.Ask(ctx, q)
}

func (p *provider) Estimate(ctx context.Context, a common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := p.Chain.Estimate(ctx, a, requests)
	if err := p.trouble(ctx); err != nil {
		for i := range out {
			out[i] = eoa.Estimated{Err: err}
		}
	}
	return out
}

func (p *provider) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := make([]eoa.Sent, len(raws))
	if err := p.trouble(ctx); err != nil {
		for i := range out {
			out[i] = transport(err)
		}
		return out
	}
	p.mu.Lock()
	says := p.says
	p.mu.Unlock()
	if says == "" {
		return p.Chain.Send(ctx, raws)
	}
	for i := range out {
		reason := eoa.Classify(says)
		out[i] = eoa.Sent{Result: reason.Result(), Reason: reason, Text: says}
	}
	return out
}

// joined returns n providers of one chain, and the chain that they make
// together.
func joined(t *testing.T, n int) ([]*provider, *Joined) {
	t.Helper()
	chain := eoatest.New(testChain, 1, 7)
	all := make([]*provider, n)
	ends := make([]eoa.BlobChain, n)
	for i := range all {
		all[i] = &provider{Chain: chain}
		ends[i] = all[i]
	}
	j, err := Join(ends...)
	require.NoError(t, err)
	return all, j
}

func TestJoinRefusesNothing(t *testing.T) {
	_, err := Join()
	require.Error(t, err)
	_, err = Join(nil)
	require.Error(t, err)
}

// The results of several endpoints make one result.
func TestMerge(t *testing.T) {
	sent := func(texts ...string) (all [][]eoa.Sent) {
		for _, text := range texts {
			s := eoa.Sent{Text: text}
			switch reason := eoa.Classify(text); {
			case text == "":
				s.Result = eoa.Accepted
			case reason == eoa.ReasonBusy:
				s.Reason, s.RetryAfter = reason, time.Second
			default:
				s.Result, s.Reason = reason.Result(), reason
			}
			all = append(all, []eoa.Sent{s})
		}
		return all
	}
	const funds, price, invalid, gap = "insufficient funds", "transaction underpriced", "intrinsic gas too low", "nonce too high"
	for _, c := range []struct {
		texts  []string
		result eoa.SendResult
		reason eoa.Reason
	}{
		{[]string{price, ""}, eoa.Accepted, eoa.ReasonNone},
		{[]string{"", invalid, "timeout"}, eoa.Accepted, eoa.ReasonNone},
		{[]string{"already known", price}, eoa.Accepted, eoa.ReasonKnown},
		{[]string{price, "timeout"}, eoa.Unknown, eoa.ReasonNone},
		{[]string{invalid, "nonce too low"}, eoa.Unknown, eoa.ReasonNonceTooLow},
		{[]string{price, price}, eoa.Rejected, eoa.ReasonUnderpriced},
		{[]string{invalid, price}, eoa.Rejected, eoa.ReasonUnderpriced},
		{[]string{invalid, funds, price}, eoa.Rejected, eoa.ReasonFunds},
		{[]string{funds, gap}, eoa.Rejected, eoa.ReasonNonceGap},
		{[]string{invalid, invalid}, eoa.Rejected, eoa.ReasonInvalid},
		{[]string{price, "too many requests"}, eoa.Unknown, eoa.ReasonNone},
		{[]string{"too many requests", "too many requests"}, eoa.Unknown, eoa.ReasonBusy},
		{[]string{"too many requests", ""}, eoa.Accepted, eoa.ReasonNone},
	} {
		for range 2 {
			got := merge(sent(c.texts...), 1)[0]
			require.Equal(t, c.result, got.Result, "%q", c.texts)
			require.Equal(t, c.reason, got.Reason, "%q", c.texts)
			require.Equal(t, c.reason == eoa.ReasonBusy, got.RetryAfter > 0, "%q", c.texts)
			c.texts[0], c.texts[len(c.texts)-1] = c.texts[len(c.texts)-1], c.texts[0] // any order
		}
	}
	require.Equal(t, []eoa.Sent{{}, {}}, merge([][]eoa.Sent{{}, nil}, 2), "missing results are unknown")
}

// One endpoint answers everything while it works. If it fails, another one
// does, and the failed one is left alone for a while.
func TestFailover(t *testing.T) {
	for name, fail := range map[string]func(p *provider){
		"down": func(p *provider) { p.down = true }, "hanging": func(p *provider) { p.hangs = true }, "busy": func(p *provider) { p.busy = time.Second },
	} {
		synctest.Test(t, func(t *testing.T) {
			all, j := joined(t, 3)
			look := func() {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
				defer cancel()
				_, err := j.Look(ctx, common.Address{1})
				require.NoError(t, err, name)
				_, err = j.Ask(ctx, eoa.Questions{Heights: []uint64{0}})
				require.NoError(t, err, name)
				require.NoError(t, j.Estimate(ctx, common.Address{1}, []*eoa.Request{{}})[0].Err, name)
			}
			look()
			require.Equal(t, []int{3, 0, 0}, []int{all[0].asked, all[1].asked, all[2].asked}, "from one at a time")
			all[0].set(fail)
			look()
			require.Equal(t, []int{4, 3, 0}, []int{all[0].asked, all[1].asked, all[2].asked}, name)
			require.Equal(t, 1, j.Endpoints()[0].Failures)
			require.Error(t, j.Endpoints()[0].Err)
			look()
			require.Equal(t, 4, all[0].asked, "it is left alone")
			all[0].set(func(p *provider) { p.down, p.hangs, p.busy = false, false, 0 })
			all[1].set(func(p *provider) { p.down = true })
			all[2].set(func(p *provider) { p.down = true })
			look()
			require.Greater(t, all[0].asked, 4, "the others do not work")
		})
	}
}

// All endpoints ask to wait, so the chain does. If one does not, the others'
// wishes are no reason to wait.
func TestAllAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, j := joined(t, 2)
		for i := range all {
			all[i].set(func(p *provider) { p.busy = 7 * time.Second })
		}
		var busy *eoa.BusyError
		_, err := j.Look(t.Context(), common.Address{})
		require.ErrorAs(t, err, &busy)
		require.Equal(t, 7*time.Second, busy.RetryAfter)
		require.Equal(t, eoa.ReasonBusy, j.Send(t.Context(), [][]byte{{1}})[0].Reason)
		all[1].set(func(p *provider) { p.busy, p.down = 0, true })
		_, err = j.Look(t.Context(), common.Address{})
		require.Error(t, err)
		require.False(t, errors.As(err, &busy))
	})
}

// An endpoint that is more than two blocks behind the others is not used. If
// all are behind, the chain went back.
func TestLaggingEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, j := joined(t, 2)
		for range 20 {
			all[0].Mine()
		}
		number := func() uint64 {
			l, err := j.Look(t.Context(), common.Address{})
			require.NoError(t, err)
			return l.Number
		}
		require.EqualValues(t, 20, number())
		all[0].set(func(p *provider) { p.lag = 2 })
		require.EqualValues(t, 18, number(), "two blocks are usual")
		all[0].set(func(p *provider) { p.lag = 10 })
		require.EqualValues(t, 20, number())
		all[1].set(func(p *provider) { p.lag = 12 })
		require.EqualValues(t, 10, number(), "the newest")
		require.EqualValues(t, 10, j.Endpoints()[0].Height)
	})
}

// An endpoint that hangs delays a send by a moment only, once.
func TestHangingEndpointDelaysNoSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, j := joined(t, 3)
		for i := range all {
			all[i].set(func(p *provider) { p.says, p.hangs = "already known", i == 1 })
		}
		for i, most := range []time.Duration{leastGrace, 0, 0} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			require.Equal(t, eoa.Accepted, j.Send(ctx, [][]byte{{1}})[0].Result)
			require.Equal(t, most, time.Since(began), "send %d", i)
			cancel()
		}
	})
}

// Endpoints fail, hang, lag, ask to wait and refuse, each at other times. All
// requests are executed once.
func TestJoinedEndpointsInTrouble(t *testing.T) {
	for seed := repeat.First(); seed < repeat.First()+uint64(repeat.Times(10, 200)); seed++ {
		synctest.Test(t, func(t *testing.T) {
			const requests = 20
			all, j := joined(t, 3)
			rng := rand.New(rand.NewPCG(seed, 12))
			key, err := crypto.ToECDSA(common.BigToHash(common.Big3).Bytes())
			require.NoError(t, err)
			a := eoa.Account{ChainID: testChain, Address: crypto.PubkeyToAddress(key.PublicKey)}
			cfg := eoa.DefaultConfig()
			cfg.CellProofs, cfg.MaxInFlight, cfg.Fees.StallTimeout = false, 5, 30*time.Second
			e, err := eoa.New(cfg, a, memstore.New(), j, eoa.NewKeySigner(testChain, key))
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			for i := range requests {
				_, err := e.Submit(ctx, eoa.Request{Key: fmt.Sprint(i), To: &a.Address, Data: []byte(fmt.Sprint(i))})
				require.NoError(t, err)
			}
			final := 0 // requests, in the order in which they were submitted
			for round := 0; final < requests; round++ {
				// A request whose estimate hangs steps back behind the others.
				r, err := e.Get(ctx, fmt.Sprint(final))
				require.NoError(t, err)
				if r.State == eoa.Final {
					final++
					continue
				}
				require.Less(t, round, 2000, "seed %d: %v", seed, r.State)
				p := all[rng.IntN(len(all))]
				p.set(func(p *provider) {
					p.down, p.hangs, p.busy, p.lag, p.says = rng.IntN(4) == 0, rng.IntN(6) == 0, 0, rng.Uint64N(5), ""
					switch rng.IntN(4) {
					case 0:
						p.says = []string{"transaction underpriced", "insufficient funds", "intrinsic gas too low"}[rng.IntN(3)]
					case 1:
						p.busy = time.Duration(rng.IntN(5)) * time.Second
					}
				})
				time.Sleep(time.Second)
				all[0].Mine()
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			landed := map[string]int{}
			for _, tx := range all[0].Transactions() {
				landed[string(tx.Data())]++
			}
			for i := range requests {
				require.Equal(t, 1, landed[fmt.Sprint(i)], "seed %d: %d", seed, i)
			}
		})
	}
}

// estimator is an endpoint that gives one answer to all estimates.
type estimator struct {
	eoa.BlobChain
	err error
}

func (s estimator) Estimate(_ context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, len(requests))
	for i := range out {
		out[i] = eoa.Estimated{Gas: 21_000, Err: s.err}
	}
	return out
}

// A request reverts only if all endpoints say so. If one of them does not
// answer, it is not known.
func TestOneEndpointRevertsNothing(t *testing.T) {
	good, reverts, down := estimator{}, estimator{err: eoa.ErrReverted}, estimator{err: errDown}
	for _, c := range []struct {
		ends []eoa.BlobChain
		want error
	}{
		{[]eoa.BlobChain{reverts, good}, nil},
		{[]eoa.BlobChain{reverts, down, good}, nil},
		{[]eoa.BlobChain{reverts, reverts}, eoa.ErrReverted},
		{[]eoa.BlobChain{reverts}, eoa.ErrReverted},
		{[]eoa.BlobChain{reverts, down}, errDown},
		{[]eoa.BlobChain{down, reverts}, errDown},
	} {
		j, err := Join(c.ends...)
		require.NoError(t, err)
		out := j.Estimate(context.Background(), common.Address{}, []*eoa.Request{{}, {}})
		require.ErrorIs(t, out[1].Err, c.want, "%v", c.ends)
	}
	j, err := Join(reverts, down)
	require.NoError(t, err)
	for range 2 { // the second endpoint is left out from the second time on
		err = j.Estimate(context.Background(), common.Address{}, []*eoa.Request{{}})[0].Err
	}
	require.ErrorIs(t, err, eoa.ErrReverted)
}

// broken is an endpoint whose Send panics.
type broken struct{ eoa.BlobChain }

func (broken) Send(context.Context, [][]byte) []eoa.Sent { panic("broken") }

// A panic of one endpoint is its failure, and the others have the transaction.
func TestPanicOfAnEndpoint(t *testing.T) {
	good := &provider{Chain: eoatest.New(testChain, 1, 7), says: "already known"}
	j, err := Join(broken{good}, good)
	require.NoError(t, err)
	require.Equal(t, eoa.Accepted, j.Send(t.Context(), [][]byte{{1}})[0].Result)
	require.ErrorContains(t, j.Endpoints()[0].Err, "broken")
}

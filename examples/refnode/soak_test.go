//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/internal/wait"
)

var (
	soak        = flag.Duration("soak", 0, "for how long TestSoak makes trouble, in whole rounds; 0: one round")
	soakSeed    = flag.Uint64("soak.seed", 1, "seed of the order of troubles in TestSoak")
	soakSenders = flag.Int("soak.senders", 10, "how many accounts send in TestSoak, at least 1")
	soakOnly    = flag.String("soak.only", "reorganizations", "regular expression of the troubles that TestSoak makes; empty: all")
)

// soakRun is a run of TestSoak. Its methods belong to the test's goroutine.
type soakRun struct {
	t       *testing.T
	ctx     context.Context
	spec    jamq.ChainSpec
	random  *rand.Rand
	began   time.Time
	jam     *jamNode
	builder *builder
	client  *ethclient.Client
	book    *book
	kills   int
}

// TestSoak keeps the room of every sender in the pool full, while one trouble
// after another strikes two real processes, the builder and the JAM node. At
// the end it reads every block itself: each acknowledged transaction is in
// exactly one of them. Otherwise another transaction of the same nonce is, and
// the node reports the replacement.
func TestSoak(t *testing.T) {
	t.Parallel()
	require.Positive(t, *soakSenders)
	ctx, cancel := context.WithTimeout(t.Context(), *soak+10*time.Minute)
	defer cancel()
	s := newSoakRun(ctx, t)
	s.logf("seed %d; repeat with: %s", *soakSeed, soakCommand())
	stop := s.startSenders()
	rounds := s.makeTrouble()
	stop()
	s.settle()
	j := &judge{client: s.client, book: s.book, funded: accounts(t)}
	require.NoError(t, j.pass(ctx))
	s.logf("%d rounds, %d kills, %d blocks thrown away; %d blocks with %d transactions; %d lost, %d twice",
		rounds, s.kills, s.thrownAway(), j.head.NumberU64(), len(j.found), len(j.lost), len(j.twice))
	s.logf("%d transactions acknowledged, %d never answered, %d refused; acknowledged and in no block, by reason: %v",
		s.book.count(acknowledged), s.book.count(unanswered), s.book.count(refused), j.reasons)
	for _, problem := range j.problems {
		t.Error(problem)
	}
	if !t.Failed() {
		s.checkJudge()
	}
}

// soakCommand returns the command that repeats this run.
func soakCommand() string {
	return fmt.Sprintf("go test ./examples/refnode -run TestSoak -soak %v -soak.seed %d -soak.senders %d -soak.only %q -timeout 0 -v",
		*soak, *soakSeed, *soakSenders, *soakOnly)
}

// newSoakRun starts both processes.
func newSoakRun(ctx context.Context, t *testing.T) *soakRun {
	t.Helper()
	s := &soakRun{
		t: t, ctx: ctx, spec: soakSpec(), random: rand.New(rand.NewPCG(*soakSeed, 0)), began: time.Now(),
		book: &book{offers: make(map[common.Hash]*offer)},
	}
	s.jam = startJAMNode(t, "-slot", s.spec.SlotDuration.String(), "-seed", fmt.Sprint(*soakSeed), "-loss", usualLoss, "-skip", usualSkip,
		"-fork", "0.02", "-lag", fmt.Sprint(soakLag), "-stdin")
	s.builder = startBuilder(t, "-jam", s.jam.url, "-bundle", "16")
	transport := &http.Transport{MaxIdleConnsPerHost: *soakSenders + 4}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := rpc.DialOptions(ctx, s.builder.url, rpc.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s.client = ethclient.NewClient(client)
	return s
}

// startSenders starts the senders, and the checks of single transactions beside
// them, until the func that it returns is called.
func (s *soakRun) startSenders() (stop func()) {
	keys, err := devkeys.Derive(devkeys.Mnemonic, max(*soakSenders, len(accounts(s.t))))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.ctx)
	var working sync.WaitGroup
	senders := make([]*soakSender, *soakSenders)
	for i := range senders {
		senders[i] = &soakSender{
			t: s.t, account: keys[i], to: common.Address{0xf7, byte(i >> 8), byte(i)}, book: s.book, client: s.client,
			random: rand.New(rand.NewPCG(*soakSeed, uint64(i)+1)), pause: 2 * s.spec.SlotDuration,
		}
	}
	s.fund(senders)
	for _, sender := range senders {
		working.Go(func() { sender.run(ctx) })
	}
	working.Go(func() { s.sampleStatus(ctx) })
	return func() {
		cancel()
		working.Wait()
	}
}

// fund pays the senders that have no money from the first account.
func (s *soakRun) fund(senders []*soakSender) {
	first := senders[0]
	for _, sender := range senders[min(len(senders), len(accounts(s.t))):] {
		wealth := new(big.Int).Mul(big.NewInt(100), big.NewInt(params.Ether))
		tx := first.sign(sender.account.Address, wealth, 1)
		s.await("the node takes a payment", func() bool { return first.send(s.ctx, tx) == nil })
		first.nonce++
	}
	s.await("the payments are in blocks", func() bool {
		nonce, err := s.client.NonceAt(s.ctx, first.account.Address, nil)
		return err == nil && nonce == first.nonce
	})
}

// sampleStatus asks for the status of acknowledged transactions, which is never
// null.
func (s *soakRun) sampleStatus(ctx context.Context) {
	random := rand.New(rand.NewPCG(*soakSeed, 0))
	for ; ctx.Err() == nil; wait.Pace(ctx, s.spec.SlotDuration/2) {
		hash, some := s.book.sample(random)
		if !some {
			continue
		}
		var status *rpcapi.TransactionStatus
		if err := s.client.Client().CallContext(ctx, &status, "jam_getTransactionStatus", hash); err == nil && status == nil {
			s.t.Errorf("%s was acknowledged, and its status is null", hash)
		}
	}
}

// makeTrouble makes all troubles in random order, again and again until the time
// is over, and returns how often. After each the chain must become final further.
func (s *soakRun) makeTrouble() (rounds int) {
	only := regexp.MustCompile(*soakOnly)
	for end := time.Now().Add(*soak); rounds == 0 || time.Now().Before(end); rounds++ {
		struck := 0
		for _, i := range s.random.Perm(len(troubles)) {
			trouble := troubles[i]
			if !only.MatchString(trouble.name) {
				continue
			}
			struck++
			s.logf("round %d: %s; %d transactions acknowledged", rounds+1, trouble.name, s.book.count(acknowledged))
			trouble.strike(s)
			before := s.finalized()
			s.await("the chain becomes final further", func() bool { return s.finalized() > before })
		}
		require.Positive(s.t, struck, "-soak.only %q matches no trouble", *soakOnly)
	}
	return rounds
}

// settle ends all faults, and waits until no transaction can run and every block
// is final. Transactions behind a nonce gap stay: the judge reports them.
func (s *soakRun) settle() {
	s.jam.command("loss 0")
	s.jam.command("skip 0")
	s.logf("the load has stopped; waiting until everything is final")
	const every = 500
	looks := 0
	s.await("everything is final", func() bool {
		var pool struct{ Pending, Queued string }
		before := s.status()
		if before == nil || s.client.Client().CallContext(s.ctx, &pool, "txpool_status") != nil {
			return false
		}
		status := s.status()
		if status == nil || status.Pending != before.Pending {
			return false // a block took transactions meanwhile
		}
		if looks++; looks%every == 0 {
			s.logf("pool %+v, block %d, finalized %d, bundles %v", pool, status.Pending, status.Finalized, status.Bundles)
		}
		return pool.Pending == "0x0" && status.Pending == status.Finalized && status.Service.Last == status.Finalized
	})
}

// checkJudge checks that the judge reports a loss and a double. The loss is an
// acknowledged transaction that no node ever saw; the double is the last block,
// applied a second time.
func (s *soakRun) checkJudge() {
	forged := &soakSender{account: accounts(s.t)[0], book: s.book, nonce: 1 << 40}
	tx := forged.sign(common.Address{1}, common.Big1, 1)
	s.book.note(tx, forged.account.Address, acknowledged)
	again := &judge{client: s.client, book: s.book, funded: accounts(s.t)}
	require.NoError(s.t, again.pass(s.ctx))
	require.Equal(s.t, []common.Hash{tx.Hash()}, again.lost)
	for _, tx := range again.head.Transactions() {
		again.apply(again.head, tx)
	}
	require.NotEmpty(s.t, again.head.Transactions())
	require.NoError(s.t, again.checkOffers(s.ctx))
	require.Len(s.t, again.twice, len(again.head.Transactions()))
}

// status returns the node's queue status, or nil if it does not answer.
func (s *soakRun) status() *rpcapi.QueueStatus {
	var status rpcapi.QueueStatus
	if s.client.Client().CallContext(s.ctx, &status, "jam_queueStatus") != nil {
		return nil
	}
	return &status
}

func (s *soakRun) finalized() uint64 {
	if status := s.status(); status != nil {
		return uint64(status.Finalized)
	}
	return 0
}

var thrownAwayLine = regexp.MustCompile(`a block failed; its transactions are executed again" block=\d+`)

// thrownAway returns how many blocks the builder has thrown away, by its log.
func (s *soakRun) thrownAway() int {
	return len(thrownAwayLine.FindAllString(s.builder.out.String(), -1))
}

// await waits until a condition holds.
func (s *soakRun) await(condition string, holds func() bool) {
	s.t.Helper()
	wait.Until(s.t, holds, "%s", condition)
}

func (s *soakRun) logf(format string, args ...any) {
	s.t.Logf("%7.2fs "+format, append([]any{time.Since(s.began).Seconds()}, args...)...)
}

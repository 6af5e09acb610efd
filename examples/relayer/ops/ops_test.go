package ops

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/examples/internal/opstest"
)

const (
	chainID    = 1337
	operations = "../../../docs/operations.md" // the page for operators
)

// nodes begin the names of metrics that examples/refnode/ops has.
var nodes = []string{"jamq_txpool_", "jamq_bundlequeue_", "jamq_submit_", "jamq_canonical_", "jamq_jam_", "jamq_node_", "jamq_statedb_", "jamq_build_"}

// silent is a store that does not answer who has undelivered events.
type silent struct{ eoa.Store }

func (silent) Undelivered(ctx context.Context, _ eoa.Account, _ int) ([]eoa.Account, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// operated runs a fleet with metrics in a bubble, and passes f a function that
// fetches a page.
func operated(t *testing.T, store eoa.Store, f func(t *testing.T, fleet *eoa.Fleet, chain *eoatest.Chain, a eoa.Account, get func(path string) (int, string))) {
	synctest.Test(t, func(t *testing.T) {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte("an operator")))
		require.NoError(t, err)
		chain := eoatest.New(chainID, 1, 2)
		m, cfg := New(), eoa.DefaultFleetConfig()
		cfg.Executor.Observe = m.Observe
		fleet, err := eoa.NewFleet(cfg, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
			return chain, eoa.NewKeySigner(chainID, key), nil
		})
		require.NoError(t, err)
		m.Watch(fleet)
		handler := Handler(fleet, m, time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- fleet.Run(ctx) }()
		go func() {
			for ctx.Err() == nil {
				time.Sleep(2 * time.Second)
				chain.Mine()
			}
		}()
		time.Sleep(time.Millisecond)
		f(t, fleet, chain, eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}, func(path string) (int, string) {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			return answer.Code, answer.Body.String()
		})
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
		time.Sleep(2 * time.Second) // the chain ends
	})
}

// An account without funds makes the fleet unhealthy after a while, and is counted. When it has
// funds, its request ends, and its events wait.
func TestHealthAndMetrics(t *testing.T) {
	var m opstest.Metrics
	operated(t, memstore.New(), func(t *testing.T, fleet *eoa.Fleet, chain *eoatest.Chain, a eoa.Account, get func(string) (int, string)) {
		has := func(lines ...string) {
			t.Helper()
			code, text := get("/metrics")
			require.Equal(t, http.StatusOK, code, text)
			for _, line := range lines {
				require.Contains(t, text, "\n"+line+"\n")
			}
		}
		code, text := get("/healthz")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "ok\n", text)
		has("jamq_eoa_busy_accounts 0", `jamq_eoa_problems{kind="funds"} 0`, "jamq_eoa_undelivered_accounts 0")

		chain.SetBalance(a.Address, uint256.NewInt(5))
		_, err := fleet.Submit(t.Context(), a, eoa.Request{Key: "a", To: &common.Address{1}, Gas: 21_000})
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		code, text = get("/healthz")
		require.Equal(t, http.StatusOK, code, "it has just begun")
		require.Contains(t, text, a.String()+": funds since 2000-01-01T00:00:00Z: needs 4242000 wei, has 5\n")
		has("jamq_eoa_busy_accounts 1", `jamq_eoa_problems{kind="funds"} 1`, `jamq_eoa_oldest_problem_seconds{kind="funds"} 30`, `jamq_eoa_problems{kind="gap"} 0`)
		time.Sleep(30 * time.Second)
		code, _ = get("/healthz")
		require.Equal(t, http.StatusServiceUnavailable, code)

		chain.SetBalance(a.Address, uint256.NewInt(4_242_000))
		time.Sleep(2 * time.Minute)
		code, _ = get("/healthz")
		require.Equal(t, http.StatusOK, code)
		has("jamq_eoa_busy_accounts 0", "jamq_eoa_undelivered_accounts 1", `jamq_eoa_transactions_total{event="sent"} 1`,
			`jamq_eoa_transactions_total{event="ended"} 1`, "jamq_eoa_confirmed_seconds_count 1", `jamq_eoa_problems{kind="funds"} 0`)
		_, text = get("/metrics")
		m = opstest.Read(t, text)
	})
	m.Explained(t)
	require.NotEmpty(t, m.Name(t, operations, nodes...))
	t.Run("alerts", func(t *testing.T) { m.Alerts(t, operations) })
}

// A store that does not answer costs one metric.
func TestSilentStore(t *testing.T) {
	operated(t, silent{memstore.New()}, func(t *testing.T, _ *eoa.Fleet, _ *eoatest.Chain, _ eoa.Account, get func(string) (int, string)) {
		code, text := get("/metrics")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, text, "jamq_eoa_busy_accounts 0\n")
		require.NotContains(t, text, "jamq_eoa_undelivered_accounts")
	})
}

// An account counts on each page once.
func TestManyUndelivered(t *testing.T) {
	store, ctx := memstore.New(), t.Context()
	const accounts = 2500
	for i := range accounts {
		a := eoa.Account{ChainID: chainID, Address: common.Address{byte(i), byte(i >> 8)}}
		l, err := store.Acquire(ctx, a, "w", time.Now(), time.Minute)
		require.NoError(t, err)
		_, err = store.Commit(ctx, l, time.Now(), eoa.Batch{Events: make([]eoa.Event, 1)})
		require.NoError(t, err)
	}
	fleet, err := eoa.NewFleet(eoa.DefaultFleetConfig(), store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return nil, nil, errors.New("closed") })
	require.NoError(t, err)
	n, err := levels{fleet}.undelivered()
	require.NoError(t, err)
	require.Equal(t, accounts, n)
}

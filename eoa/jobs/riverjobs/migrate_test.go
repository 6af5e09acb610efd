package riverjobs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/eoa/memstore"
)

// migrateAtOnce migrates a schema several times at the same time.
func migrateAtOnce(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	var errs [8]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = riverjobs.Migrate(t.Context(), pool, schema) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, riverjobs.Migrate(t.Context(), pool, schema), "once more")
}

// Processes that start at the same time migrate the same new schema.
func TestMigrateAtTheSameTime(t *testing.T) {
	pool, schema := database(t, new(queries))
	for round := range 5 {
		migrateAtOnce(t, pool, fmt.Sprint(schema, "_", round))
	}
}

// Behind a pooler in transaction mode, a lock of a session would stay with the
// session, or belong to another process. One session must be enough, because a
// transaction that needs another session of the same caller may never get it.
func TestMigrateBehindPooler(t *testing.T) {
	pool, schema := database(t, new(queries))
	for _, sessions := range []int{1, 2, 8} {
		dir := startPooler(t, &pool.Config().ConnConfig.Config, sessions)
		clients, err := pgxpool.New(t.Context(), "postgres://jamq@/postgres?default_query_exec_mode=exec&pool_max_conns=20&host="+dir)
		require.NoError(t, err)
		for round := range 2 {
			migrateAtOnce(t, clients, fmt.Sprintf("%s_%d_%d", schema, sessions, round))
		}
		clients.Close()
	}
	var locks int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").Scan(&locks))
	require.Zero(t, locks)
}

// A role that may not create schemas makes and updates the tables in one that
// exists.
func TestMigrateWithoutRightToCreateSchemas(t *testing.T) {
	pool, schema := database(t, new(queries))
	role, own := schema+"_role", schema+"_own"
	for _, sql := range []string{"CREATE ROLE " + role + " LOGIN", "CREATE SCHEMA " + own + " AUTHORIZATION " + role} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	cfg := pool.Config()
	cfg.ConnConfig.User = role
	limited, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer limited.Close()
	require.Error(t, riverjobs.Migrate(t.Context(), limited, schema+"_new"), "the role has no such right")
	migrateAtOnce(t, limited, own)
}

// A Migrate that is interrupted between two versions goes on from there.
func TestMigrateGoesOn(t *testing.T) {
	pool, schema := database(t, new(queries))
	var tables int
	for round := 1; tables == 0; round += 5 {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := pool.Config()
		cfg.ConnConfig.Tracer = &interrupter{after: round, stop: cancel}
		other, err := pgxpool.NewWithConfig(t.Context(), cfg)
		require.NoError(t, err)
		next := fmt.Sprint(schema, "_", round)
		interrupted := riverjobs.Migrate(ctx, other, next)
		cancel()
		other.Close()
		require.NoError(t, riverjobs.Migrate(t.Context(), pool, next), "after %d statements", round)
		if interrupted == nil {
			tables = round
		}
	}
	require.Greater(t, tables, 20, "it has been interrupted often")
}

// Validate, Migrate and New agree on the names of schemas, so that no tables are
// made that no engine can use.
func TestSchemaNames(t *testing.T) {
	pool, _ := database(t, new(queries))
	open := func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return eoatest.New(1, 1, 1), eoa.NewKeySigner(1), nil
	}
	for name, valid := range map[string]bool{
		"jamq": true, "_a1": true, "JAMQ_2": true, strings.Repeat("a", 46): true, strings.Repeat("a", 47): false, strings.Repeat("a", 63): false,
		"": false, "my-schema": false, "1a": false, "a.b": false, `a"b`: false, "ä": false, "a b": false, "a\n": false,
	} {
		cfg := riverjobs.DefaultConfig()
		cfg.Schema = name
		migrated := riverjobs.Migrate(t.Context(), pool, name)
		if !valid {
			require.ErrorIs(t, cfg.Validate(), eoa.ErrInvalidConfig, name)
			require.ErrorIs(t, migrated, eoa.ErrInvalidConfig, name)
			continue
		}
		require.NoError(t, cfg.Validate(), name)
		require.NoError(t, migrated, name)
		engine, err := riverjobs.New(cfg, pool, memstore.New(), open)
		require.NoError(t, err, name)
		require.NoError(t, engine.Wake(t.Context(), eoa.Account{ChainID: 1}), name)
	}
	require.ErrorIs(t, riverjobs.Migrate(t.Context(), nil, "jamq"), eoa.ErrInvalidConfig)
}

// interrupter cancels a context at the start of a statement.
type interrupter struct {
	after int // statements before
	stop  context.CancelFunc
}

func (i *interrupter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if i.after--; i.after < 0 {
		i.stop()
	}
	return ctx
}

func (i *interrupter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

package riverjobs

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/jamq/jamq/eoa"
)

// Migrate creates the schema and River's tables in it, or updates them. It may be
// called repeatedly, by several processes at the same time, and while engines run.
// It also works behind a pooler in transaction mode, because it leaves nothing in
// the session. If the schema exists, the role needs no right to create schemas.
//
// Each version of the tables is created in a separate transaction, because
// PostgreSQL allows a new value of an enumeration to be used only after a commit.
// An interrupted Migrate therefore leaves an older version, and the next call
// continues from that version.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if err := checkSchema(schema); err != nil {
		return err
	}
	if pool == nil {
		return fmt.Errorf("%w: want a pool", eoa.ErrInvalidConfig)
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("riverjobs: %w", err)
	}
	for more := true; more && err == nil; {
		err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			more, err = migrateOnce(ctx, tx, m, schema)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("riverjobs: schema %q: %w", schema, err)
	}
	return nil
}

// migrateOnce updates the tables to the next version, or returns false.
func migrateOnce(ctx context.Context, tx pgx.Tx, m *rivermigrate.Migrator[pgx.Tx], schema string) (more bool, err error) {
	// Other processes that migrate the same schema wait here until the transaction
	// ends, and then see its result.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "riverjobs "+schema); err != nil {
		return false, err
	}
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)", schema).Scan(&exists); err != nil {
		return false, err
	}
	if !exists {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return false, err
		}
	}
	//lint:ignore SA1019 River deprecates it because several versions cannot share a transaction, and this is one.
	done, err := m.MigrateTx(ctx, tx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{MaxSteps: 1})
	if err != nil {
		return false, err
	}
	return len(done.Versions) > 0, nil
}

// maxSchema is the maximum length of a schema's name, in bytes. PostgreSQL shortens
// the name of a channel to 63 bytes, and River's longest channel name has 16 bytes
// after the schema and a dot.
const maxSchema = 63 - 1 - 16

var schemaName = regexp.MustCompile("^[a-zA-Z_][a-zA-Z0-9_]*$")

// checkSchema returns an error if River would refuse the name of the schema.
func checkSchema(schema string) error {
	// River itself checks the name only when an engine is created, after Migrate
	// has created the tables.
	if len(schema) > maxSchema || !schemaName.MatchString(schema) {
		return fmt.Errorf("%w: Schema is %q, want 1 to %d letters, digits and underscores, and no digit first", eoa.ErrInvalidConfig, schema, maxSchema)
	}
	return nil
}

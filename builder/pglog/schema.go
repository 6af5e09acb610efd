package pglog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// version is the version of the tables.
const version = 2

// tables are the SQL statements that create the tables of a log, in which {name} stands
// for the name of the log. An append locks the row of {name}_log, and a renewal of the
// lease locks the row of {name}_lease, so that a renewal never waits for an append.
const tables = `
create table if not exists {name}_log (
	id       smallint primary key check (id = 1),
	version  integer not null,
	epoch    bigint not null, -- rises with each leader
	holder   bytea not null,  -- random, of the leader's process
	system   text not null,   -- identifier and timeline of the database for this leader
	written  text not null,   -- the same at the last write, or when the table was created
	first    bigint not null, -- position of the first entry of Replay
	next     bigint not null, -- position of the next entry
	base     bytea not null,  -- hash before the first entry
	tip      bytea not null   -- hash after the last entry: see extend
);
create table if not exists {name}_lease (
	id        smallint primary key check (id = 1),
	epoch     bigint not null,
	holder    bytea not null,
	address   text not null,
	beat      bigint not null,  -- rises with each renewal
	free      boolean not null, -- the leader has given the lead away
	successor text not null     -- address of the process that gets the lead, empty for any
);
create table if not exists {name}_entry ( -- the records of a call of Append: see appendEntry
	position bigint primary key,
	body     bytea not null
);
alter table {name}_entry alter column body set storage external;
create table if not exists {name}_replaced ( -- a row for each call of Replace
	position bigint primary key, -- of the call, which takes the place of an entry
	base     bytea not null,     -- hash before its first entry
	next     bigint not null,    -- position after its last entry
	tip      bytea not null      -- hash after its last entry
);
create table if not exists {name}_member ( -- a row for each process that follows
	member   text primary key, -- its address, or any name
	position bigint not null, -- of the next entry that the process reads
	seen     timestamptz not null
);
insert into {name}_log values (1, {version}, 0, '', '', {system}, 0, 0, '', '') on conflict do nothing;
insert into {name}_lease values (1, 0, '', '', 0, true, '') on conflict do nothing;
`

// system is an SQL expression for the identity of the database that executes a
// statement. It consists of the identifier of the cluster and the timeline, which
// changes when a standby is promoted.
const system = `((select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8))`

// sql replaces the names in braces, such as {name}, in a statement.
func (l *Log) sql(statement string) string {
	return strings.NewReplacer("{name}", l.cfg.Name, "{version}", fmt.Sprint(version), "{system}", system, "{tag}", "/* "+l.tag()+" */").Replace(statement)
}

// createTables creates the tables if they do not exist, and checks their version.
func (l *Log) createTables(ctx context.Context) error {
	var there bool
	if err := l.pool.QueryRow(ctx, "select to_regclass($1) is not null", l.cfg.Name+"_lease").Scan(&there); err != nil {
		return err
	}
	// If the tables exist, take no lock, because an old leader may have stopped while
	// it held one.
	if !there {
		if err := pgx.BeginFunc(ctx, l.pool, l.createInOneTransaction); err != nil {
			return err
		}
	}
	var have int
	if err := l.pool.QueryRow(ctx, l.sql("select version from {name}_log")).Scan(&have); err != nil {
		return err
	}
	if have != version {
		return fmt.Errorf("%w: have %d, want %d", ErrVersion, have, version)
	}
	return nil
}

func (l *Log) createInOneTransaction(tx pgx.Tx) error {
	ctx := context.Background()
	// Two processes that create a table at the same time disturb each other.
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtext($1))", "jamq pglog "+l.cfg.Name); err != nil {
		return err
	}
	for statement := range strings.SplitSeq(tables, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := tx.Exec(ctx, l.sql(statement)); err != nil {
			return err
		}
	}
	return nil
}

#!/bin/sh
# replicas.sh runs three replicas of the reference node on this machine, with a simulated JAM chain
# and a PostgreSQL whose commits wait for a synchronous standby, until it is interrupted. All data is
# in a temporary folder, which it removes. It needs Go, and the programs of PostgreSQL: in the
# folder that JAMQ_POSTGRES_BIN names, in the path, or where Debian has them.
set -eu
cd "$(dirname "$0")/../.."
bin=${JAMQ_POSTGRES_BIN:-}
for folder in $(echo "$PATH" | tr : ' ') /usr/lib/postgresql/*/bin; do
	if [ -z "$bin" ] && [ -x "$folder/initdb" ] && [ -x "$folder/pg_basebackup" ]; then bin=$folder; fi
done
[ -n "$bin" ] || { echo "initdb and pg_basebackup are missing: install PostgreSQL" >&2; exit 1; }
dir=$(mktemp -d)
as= # PostgreSQL does not run as root
if [ "$(id -u)" = 0 ]; then
	as="runuser -u postgres --"
	chown postgres "$dir"
	chmod 755 "$dir"
fi
finish() {
	trap - EXIT
	# shellcheck disable=SC2086
	kill $processes 2>/dev/null || :
	wait
	for server in standby primary; do
		$as "$bin/pg_ctl" -D "$dir/$server" -m immediate -w stop >/dev/null 2>&1 || :
	done
	rm -rf "$dir"
}
processes=
trap finish EXIT
trap 'exit 0' INT TERM

# The database and its standby, behind sockets in the folder.
cd "$dir"
socket() { echo "-h '' -k $dir -p $1 -F"; }
$as "$bin/initdb" -D "$dir/primary" -U jamq -A trust --no-sync >/dev/null
$as "$bin/pg_ctl" -D "$dir/primary" -w -l "$dir/primary/log" -o "$(socket 5432)" start >/dev/null
$as "$bin/pg_basebackup" -D "$dir/standby" -h "$dir" -U jamq -R -d "application_name=standby" -c fast
$as "$bin/pg_ctl" -D "$dir/standby" -w -l "$dir/standby/log" -o "$(socket 5433)" start >/dev/null
$as "$bin/psql" -h "$dir" -U jamq -d postgres -qc "alter system set synchronous_standby_names = 'standby'" -c "select pg_reload_conf()" >/dev/null
cd - >/dev/null

CGO_ENABLED=0 go build -o "$dir" ./examples/refnode ./examples/jamnode
"$dir/refnode" -genesis >"$dir/genesis.json"
"$dir/jamnode" -listen 127.0.0.1:19800 -slot 1s -genesis "$dir/genesis.json" >"$dir/jamnode.log" 2>&1 &
processes=$!

# start N starts replica N.
start() {
	: >>"$dir/replica$1.log"
	before=$(wc -l <"$dir/replica$1.log")
	"$dir/refnode" -jam ws://127.0.0.1:19800 -datadir "$dir/data$1" -authrpc.jwtsecret "$dir/key" \
		-http "127.0.0.1:854$1" -cluster.synchronous -cluster "postgres://jamq@/postgres?host=$dir" -lab -v >>"$dir/replica$1.log" 2>&1 &
	processes="$processes $!"
	eval "replica$1=$!"
	until tail -n "+$((before + 1))" "$dir/replica$1.log" | grep -q "Listening on"; do
		kill -0 $! || { cat "$dir/replica$1.log"; exit 1; }
		sleep 0.2
	done
	echo "replica $1: http://127.0.0.1:854$1, process $!, log $dir/replica$1.log"
}
: >>"$dir/jamnode.log"
until grep -q "Listening on" "$dir/jamnode.log"; do sleep 0.2; done
for n in 1 2 3; do start $n; done
echo "The key of the administrators is in $dir/key."
echo "Kill one on its page in a browser, or with kill -9 and its process. It is started again after 10 seconds. Interrupt this script to end all."
while :; do
	sleep 10
	for n in 1 2 3; do
		eval "process=\$replica$n"
		kill -0 "$process" 2>/dev/null || start $n
	done
done

package postgres

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// StartPooler starts pgbouncer in transaction mode in front of a server. It returns the connection
// string, and a function that ends it. The error wraps ErrMissing if pgbouncer is not in the path.
func StartPooler(s *Server) (url string, stop func(), err error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	dir, err := os.MkdirTemp("", "jamq-pooler-")
	if err != nil {
		return "", nil, err
	}
	config := fmt.Sprintf(`[databases]
* = host=%s user=jamq
[pgbouncer]
listen_addr =
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 8
logfile = %s
`, s.Dir, dir, filepath.Join(dir, "log"))
	name := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(name, []byte(config), 0o644); err != nil {
		return "", nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(program, "-q", name)
	if err := unprivileged(cmd, dir); err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	for {
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432"))
		if err == nil {
			return "postgres://jamq@/postgres?port=6432&host=" + dir, stop, conn.Close()
		}
		select {
		case <-ended:
			return "", stop, fmt.Errorf("postgres: pgbouncer has ended: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

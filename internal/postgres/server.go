// Package postgres starts PostgreSQL for tests. It needs its programs: see [Start].
package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// ErrMissing is wrapped by the error of a machine without PostgreSQL.
var ErrMissing = errors.New("postgres: not installed")

// Server is a PostgreSQL behind a Unix socket, with the user jamq.
type Server struct {
	bin string // folder of the programs
	// Dir is the folder of the socket.
	Dir string
}

// Start creates a database and starts its server, with settings such as "fsync=off". The programs
// are in the folder that JAMQ_POSTGRES_BIN names, in the path, or at Debian's newest version. The
// caller calls Remove at the end, also after an error, unless the server is nil.
func Start(settings ...string) (*Server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := s.run("initdb", "-D", s.data(), "-U", "jamq", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return s, err
	}
	return s, s.Start(settings...)
}

// newServer finds the programs and makes a folder. The path of a socket has to be short, so it is
// not the folder of a test.
func newServer() (*Server, error) {
	bin := os.Getenv("JAMQ_POSTGRES_BIN")
	if path, err := exec.LookPath("initdb"); bin == "" && err == nil {
		// All programs are beside the real one.
		if path, err = filepath.EvalSymlinks(path); err == nil {
			bin = filepath.Dir(path)
		}
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); bin == "" && len(found) > 0 {
		bin = filepath.Dir(slices.Max(found))
	}
	if bin == "" {
		return nil, ErrMissing
	}
	dir, err := os.MkdirTemp("", "jamq-postgres-")
	return &Server{bin, dir}, err
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// URL returns the connection string of the server.
func (s *Server) URL() string { return "postgres://jamq@/postgres?host=" + s.Dir }

// Start starts the server, and waits until it answers.
func (s *Server) Start(settings ...string) error {
	all := "-h '' -k " + s.Dir + " -F -c max_connections=300"
	for _, setting := range settings {
		all += " -c " + setting
	}
	return s.control("-l", filepath.Join(s.Dir, "log"), "-o", all, "start")
}

// Standby creates a standby that follows the server, with the name standby, and starts it. The
// caller calls Remove at the end, unless the standby is nil.
func (s *Server) Standby() (*Server, error) {
	standby, err := newServer()
	if err != nil {
		return nil, err
	}
	return standby, standby.follow(s)
}

// follow makes a server without data the standby of another one, and starts it.
func (s *Server) follow(primary *Server) error {
	err := s.run("pg_basebackup", "-D", s.data(), "-h", primary.Dir, "-U", "jamq",
		"-R", "-d", "application_name=standby", "-c", "fast", "--no-sync")
	if err != nil {
		return err
	}
	return s.Start()
}

// Execute runs a statement of SQL.
func (s *Server) Execute(statement string) error {
	return s.run("psql", "-h", s.Dir, "-U", "jamq", "-d", "postgres", "-qc", statement)
}

// Tablespace makes an empty directory a tablespace, which can be on another disk than the server.
func (s *Server) Tablespace(name, dir string) error {
	if err := unprivileged(new(exec.Cmd), dir); err != nil {
		return err
	}
	return s.Execute(fmt.Sprintf("create tablespace %s location '%s'", name, dir))
}

// Cut ends all connections of clients.
func (s *Server) Cut() error {
	return s.Execute("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
}

// Kill ends the server as a crash does, and waits until it has ended.
func (s *Server) Kill() error { return s.control("-m", "immediate", "stop") }

// Remove ends the server, and removes its files.
func (s *Server) Remove() {
	_ = s.Kill()
	_ = os.RemoveAll(s.Dir)
}

func (s *Server) control(args ...string) error {
	return s.run("pg_ctl", append([]string{"-D", s.data(), "-w", "-t", "3600"}, args...)...)
}

// run runs a program of PostgreSQL.
func (s *Server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	if err := unprivileged(cmd, s.Dir); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("postgres: %s: %w\n%s", name, err, out)
	}
	return nil
}

// Require skips a test if PostgreSQL is missing, and fails it after another error. With
// JAMQ_REQUIRE_POSTGRES set, it fails also if PostgreSQL is missing.
func Require(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("JAMQ_REQUIRE_POSTGRES") == "" {
		t.Skip("no PostgreSQL here: nothing of this is tested")
	}
	if err != nil {
		t.Fatal(err)
	}
}

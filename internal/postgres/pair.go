package postgres

import (
	"fmt"
	"os"
)

// Pair is a server with a standby.
type Pair struct {
	// Primary accepts writes.
	Primary *Server
	// Standby follows the primary. After FailOver it is the server that was killed.
	Standby *Server
}

// StartPair starts a server and a standby. If synchronous is true, commits wait until the standby
// has them. The caller calls Remove at the end, also after an error, unless the pair is nil.
func StartPair(synchronous bool) (*Pair, error) {
	primary, err := Start()
	if primary == nil {
		return nil, err
	}
	p := &Pair{Primary: primary}
	if err == nil && synchronous { // before the standby is made, which has the same settings
		err = primary.Execute("alter system set synchronous_standby_names = 'standby'")
	}
	if err == nil {
		p.Standby, err = primary.Standby()
	}
	if err == nil && synchronous {
		err = primary.Execute("select pg_reload_conf()")
	}
	return p, err
}

// URL returns the connection string of the pair. Connections go to the server that accepts writes.
func (p *Pair) URL() string {
	return fmt.Sprintf("postgres://jamq@/postgres?host=%s,%s&target_session_attrs=read-write", p.Primary.Dir, p.Standby.Dir)
}

// FailOver ends the primary as a crash does, and promotes the standby. If commits wait for a
// standby, they do so until Rebuild has made one.
func (p *Pair) FailOver() error {
	if err := p.Primary.Kill(); err != nil {
		return err
	}
	return p.Promote()
}

// Promote makes the standby the server that accepts writes. The primary must have ended.
func (p *Pair) Promote() error {
	p.Primary, p.Standby = p.Standby, p.Primary
	return p.Primary.control("promote")
}

// Rebuild makes the server that FailOver has killed the standby of the new primary.
func (p *Pair) Rebuild() error {
	if err := os.RemoveAll(p.Standby.data()); err != nil {
		return err
	}
	return p.Standby.follow(p.Primary)
}

// AwaitStandby returns when the standby has all that the primary has committed, if commits wait for
// it. A primary that has crashed shows commits that the standby may lack for some seconds.
func (p *Pair) AwaitStandby() error {
	return p.Primary.Execute("create table if not exists awaited (); insert into awaited default values")
}

// Remove ends both servers, and removes their files.
func (p *Pair) Remove() {
	p.Primary.Remove()
	if p.Standby != nil {
		p.Standby.Remove()
	}
}

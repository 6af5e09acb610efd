// Package lab runs a node that users can watch, and break.
//
//	node.go      the node with its hub
//	watch.go     shows the hub what the node does
//	lab.go       injects faults into the simulated chain
//	replicas.go  shows the replicas of a cluster, and kills them
package lab

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/live"
)

// Config configures a node with its laboratory. Start from [DefaultConfig].
type Config struct {
	node.Config
	// Lab lets users of the page inject faults into the embedded chain; see [Node.Lab]. With
	// Cluster it lets them kill replicas; see [Node.KillReplica]. It cannot be used with JAMURL
	// alone.
	Lab bool
}

// DefaultConfig is node.DefaultConfig, without the laboratory.
func DefaultConfig(spec jamq.ChainSpec, slot time.Duration, seed uint64) Config {
	return Config{Config: node.DefaultConfig(spec, slot, seed)}
}

// Validate returns an error that wraps node.ErrInvalidConfig and names the first field that is out
// of range.
func (c *Config) Validate() error {
	if c.Lab && c.JAMURL != "" && c.Cluster.URL == "" {
		return fmt.Errorf("%w: Lab is set together with JAMURL %q, want one of them, or Cluster: only the embedded chain and replicas can be broken", node.ErrInvalidConfig, c.JAMURL)
	}
	return c.Config.Validate()
}

// Node is a node with a hub that shows what it does.
type Node struct {
	*node.Node
	cfg      Config
	log      *slog.Logger
	live     *live.Hub
	replicas atomic.Pointer[live.Cluster] // as seen last; nil before and without a cluster
}

// New returns a node, which [Node.Run] starts.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Lab {
		cfg.JAM.FinalityLag = max(cfg.JAM.FinalityLag, labFinality)
	}
	core, err := node.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	n := &Node{Node: core, cfg: cfg, log: cfg.Logger}
	n.makeLive()
	core.Observe(n)
	return n, nil
}

// Run runs the node and its hub: see node.Node.Run.
func (n *Node) Run(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	var views sync.WaitGroup
	views.Go(func() { _ = n.live.Run(running) })
	if n.Clustered() {
		views.Go(func() { n.followReplicas(running) })
	}
	err := n.Node.Run(ctx)
	stop()
	views.Wait()
	return err
}

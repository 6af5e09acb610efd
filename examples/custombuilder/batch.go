package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// batch is the bundle type of this builder. The queue carries it and never
// reads it.
type batch struct {
	txs  types.Transactions
	work jamtest.Package // once it is built
}

func (b batch) String() string {
	var names []string
	for _, tx := range b.txs {
		if *tx.To() == oracle {
			names = append(names, "oracle")
		} else {
			names = append(names, fmt.Sprintf("%d gwei", tx.GasPrice().Int64()/1e9))
		}
	}
	return strings.Join(names, ", ")
}

// packer makes packages from batches.
type packer struct{ driver *jamtest.Driver }

// Build implements submit.Builder. The package must have the anchor and the
// prerequisites of the request. They make it safe to build another package
// later.
func (p packer) Build(_ context.Context, r bundlequeue.Build[batch]) (submit.Package[batch], error) {
	recent, lookup := p.driver.Anchors()
	refine, err := anchor.Pick(recent, r.Anchor.Hash, lookup, r.Prerequisites)
	if err != nil {
		return submit.Package[batch]{}, err
	}
	payload, err := rlp.EncodeToBytes(r.Bundle.txs)
	if err != nil {
		return submit.Package[batch]{}, err
	}
	b := batch{r.Bundle.txs, jamtest.NewPackage(service, refine, payload)}
	return submit.Package[batch]{Hash: b.work.Hash, Context: refine, Bundle: b}, nil
}

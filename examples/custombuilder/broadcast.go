package main

import (
	"context"
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/submit"
)

// service is the rollup's service on the JAM chain.
const service jamq.ServiceID = 7

// copies is the number of guarantors that receive a package at once.
const copies = 2

// broadcaster sends each package to two guarantors of its core, which costs
// some bandwidth. Any number of guarantors may receive the same bytes, because
// a chain reports a package only once.
type broadcaster struct{ *simnet.Network }

// Send implements builder.Network. It fails only if no guarantor accepted the
// package.
func (n broadcaster) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	var failed []error
	for i := range copies {
		if err := n.Network.Send(ctx, pkg, core, copies*attempt+i); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) < copies {
		return nil
	}
	return submit.WithClass(submit.OtherGuarantor, errors.Join(failed...))
}

package main

import (
	"context"
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// service is the rollup's service on the JAM chain.
const service jamq.ServiceID = 7

// copies is the number of guarantors that receive a package at once.
const copies = 2

// broadcaster sends each package to two guarantors of its core, which costs
// some bandwidth. Any number of guarantors may receive the same bytes, because
// a chain reports a package only once.
type broadcaster struct{ driver *jamtest.Driver }

// Submit implements submit.Submitter. It fails only if no guarantor accepted
// the package.
func (s broadcaster) Submit(_ context.Context, r bundlequeue.Send[batch]) error {
	var failed error
	taken := 0
	for i := range copies {
		if err := s.driver.Submit(r.Bundle.work, r.Core, copies*r.Attempt+i); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		taken++
	}
	if taken > 0 {
		return nil
	}
	return submit.WithClass(submit.OtherGuarantor, failed)
}

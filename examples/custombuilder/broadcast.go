package main

import (
	"context"
	"errors"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// service is our rollup's on the JAM chain.
const service jamq.ServiceID = 7

// copies is to how many guarantors at once a package goes.
const copies = 2

// broadcaster gives each package to two guarantors of its core, for the price of some bandwidth. The same bytes may go to any number of them: the chain
// takes a package once.
type broadcaster struct{ driver *jamtest.Driver }

// Submit implements submit.Submitter. It fails only if nobody took the package.
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

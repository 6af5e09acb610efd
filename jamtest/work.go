package jamtest

import (
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// Work decodes an encoded work package and checks it as a guarantor does. If the
// package's authorizer is that of package service, the package must be signed. Other
// authorizers are not simulated and accept every package. The service gets only the
// payload of the first work item. Errors wrap ErrRefused or service.ErrUnauthorized, or
// are those of codec.Decode.
func Work(c *codec.Codec, raw []byte) (Package, error) {
	work, err := codec.Decode[codec.WorkPackage](c, raw)
	if err != nil {
		return Package{}, err
	}
	if len(work.Items) == 0 {
		return Package{}, fmt.Errorf("%w: no work items", ErrRefused)
	}
	code, err := service.AuthorizerBlob(c.Version())
	if err != nil {
		return Package{}, err
	}
	if work.AuthCodeHash == blake2b.Sum256(code) {
		if err := service.Authorize(c, &work); err != nil {
			return Package{}, fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	p := Package{
		Hash: jamq.PackageHash(blake2b.Sum256(raw)), Context: work.Context,
		Service: work.Items[0].Service, Authorizer: work.Authorizer(), Payload: work.Items[0].Payload,
	}
	for i := range work.Items {
		p.Gas += work.Items[i].AccumulateGas
	}
	return p, nil
}

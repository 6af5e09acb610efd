package drive

import (
	"context"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
)

// Builder makes packages. Its methods are called from several goroutines
// concurrently.
type Builder interface {
	// Build makes a package for request, anchored as request requires. The
	// Builder can ignore request.Ticket.
	//
	// If Build returns an error, the queue requests the build again after a
	// back-off, without limit. An error of class [Fatal] pauses the runner. ctx
	// ends after Config.BuildTimeout, or when the runner stops.
	Build(ctx context.Context, request bundlequeue.Build) (Package, error)
}

// Package is the result of [Builder.Build].
type Package struct {
	// Hash is the hash of the package's bytes.
	Hash jamq.PackageHash
	// Context is the refine context that the bytes contain.
	Context jamq.RefineContext
	// Bundle is passed to the Submitter. It holds the package's bytes.
	Bundle []byte
}

// Submitter sends packages. Its methods are called from several goroutines
// concurrently.
type Submitter interface {
	// Submit sends a package to a guarantor of request.Core. It should choose
	// another guarantor for each request.Attempt.
	//
	// If Submit returns an error, the runner sends the same bytes again after a
	// back-off, unless the class of the error requires otherwise: see
	// [WithClass]. ctx ends after Config.SubmitTimeout, or when the runner
	// stops.
	Submit(ctx context.Context, request bundlequeue.Send) error
}

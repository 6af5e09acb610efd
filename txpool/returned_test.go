package txpool

import "errors"

// errNoDisk is the error of an account that cannot be read.
var errNoDisk = errors.New("no disk")

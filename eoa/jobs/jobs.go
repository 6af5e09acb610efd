// Package jobs fixes what a distributed job engine must carry so that the executor of package eoa can run as its jobs: one job per
// account, unique by [Step.UniqueKey], whose payload is a [Step]. The engine's adapter is not here yet.
package jobs

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jamq/jamq/eoa"
)

// ErrMalformed: a payload that is no Step.
var ErrMalformed = errors.New("jobs: malformed step")

// Step is the payload of a job: run the executor of one account once.
type Step struct {
	// Account is the sender.
	Account eoa.Account `json:"account"`
	// Wake is the account's wake version when the job was made. A job that ends while the version is another one runs again, so that no
	// wake-up is lost.
	Wake uint64 `json:"wake"`
}

// UniqueKey is the same for all steps of an account: the engine keeps at most one of them.
func (s Step) UniqueKey() string {
	return fmt.Sprintf("eoa:%d:%s", s.Account.ChainID, s.Account.Address.Hex())
}

// Encode returns the payload's bytes.
func (s Step) Encode() ([]byte, error) { return json.Marshal(s) }

// Decode is the inverse of Encode. The error wraps ErrMalformed.
func Decode(payload []byte) (Step, error) {
	var s Step
	if err := json.Unmarshal(payload, &s); err != nil {
		return Step{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return s, nil
}

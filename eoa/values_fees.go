// go test ./internal/tidy -update writes this file from eoa/internal/account/fees.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Fees are the prices of a transaction, in wei per gas and per blob gas.
//
//	type Fees struct {
//		// Cap is the highest total price per gas, tip included.
//		Cap uint256.Int `json:"cap"`
//		// Tip is the part of the price that goes to the block's author. It is at
//		// most Cap.
//		Tip uint256.Int `json:"tip"`
//		// Blob is the highest price of blob gas (EIP-4844); 0 means no blobs.
//		Blob uint256.Int `json:"blob,omitzero"`
//	}
type Fees = account.Fees

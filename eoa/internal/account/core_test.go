package account

import (
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The allocator gives out each nonce once and only free ones. A user's request
// never gets a nonce in Gaps, for which an unknown transaction may exist.
func TestAllocator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 200), 0, 30, rapid.ID).Draw(t, "holes")
		slices.Sort(gaps)
		a := allocator{next: 201, gaps: gaps}
		given, last := map[uint64]bool{}, uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			own := rapid.Bool().Draw(t, "own")
			n, ok := a.nonce(own)
			if !ok {
				require.True(t, own, "a user's request always gets a nonce")
				continue
			}
			require.False(t, given[n], "nonce %d twice", n)
			given[n] = true
			if own {
				require.Contains(t, gaps, n)
			} else {
				require.Greater(t, n, max(last, 200))
				last = n
			}
		}
	})
}

// Each error text of a node has its reason.
func TestClassify(t *testing.T) {
	for text, want := range map[string]Reason{
		"already known":     ReasonKnown,
		"Known transaction": ReasonKnown,
		"AlreadyKnown":      ReasonKnown,
		"nonce too low: next nonce 5, tx nonce 4":     ReasonNonceTooLow,
		"nonce too low: address 0x00, tx: 4 state: 5": ReasonNonceTooLow,
		"OldNonce, Current nonce: 5, nonce of tx: 4":  ReasonNonceTooLow,
		"Nonce too low": ReasonNonceTooLow,
		"nonce too high: address 0x00, tx: 9 state: 5":                     ReasonNonceGap,
		"NonceGap, Future nonce. Expected nonce: 5":                        ReasonNonceGap,
		"gapped-nonce tx from delegated accounts":                          ReasonNonceGap,
		"replacement transaction underpriced":                              ReasonReplacement,
		"ReplacementNotAllowed":                                            ReasonReplacement,
		"could not replace existing tx":                                    ReasonReplacement,
		"transaction underpriced: tip needed 1, tip permitted 0":           ReasonUnderpriced,
		"max fee per gas less than block base fee: address 0x00":           ReasonUnderpriced,
		"FeeTooLow, MaxFeePerGas too low":                                  ReasonUnderpriced,
		"insufficient funds for gas * price + value: balance 0, tx cost 1": ReasonFunds,
		"Upfront cost exceeds account balance":                             ReasonFunds,
		"InsufficientFunds, Balance is zero":                               ReasonFunds,
		"intrinsic gas too low: gas 20000, minimum needed 21000":           ReasonInvalid,
		"exceeds block gas limit":                                          ReasonGasLimit,
		"oversized data: transaction size 200000, limit 131072":            ReasonInvalid,
		"txpool is full":                             ReasonFull,
		"fee too low":                                ReasonUnderpriced, // erigon, and those below
		"IntrinsicGas":                               ReasonInvalid,
		"existing txn with same hash":                ReasonKnown,
		"baseFee sub-pool is full":                   ReasonFull,
		"blobs limit in txpool is full":              ReasonFull,
		"can't replace blob-txn with a non-blob-txn": ReasonReplacement,
		"fork supporting this transaction type is not activated yet":        ReasonInvalid,
		"KZGcommitments must match the corresponding blobs and proofs":      ReasonInvalid,
		"nonce too far in future":                                           ReasonNonceGap,
		"pending transaction type conflict":                                 ReasonFull,
		"PendingTxsOfConflictingType":                                       ReasonFull,
		"transaction invalid, Wrong proof version in blob network wrapper":  ReasonInvalid,
		"unexpected eip-4844 sidecar after osaka":                           ReasonInvalid, // reth
		"Wrong sidecar format: unexpected sidecar version, want: 1, got: 0": ReasonInvalid, // geth
		"gapped-nonce, nonce too high: tx nonce 7, gapped nonce 5":          ReasonNonceGap,
		"Gas price below configured minimum gas price":                      ReasonUnderpriced,
		"in-flight transaction limit reached for delegated accounts":        ReasonFull,
		"Too Many Requests":                                                 ReasonBusy,
		"daily request limit exceeded":                                      ReasonBusy,
		"<html><body>502</body></html>":                                     ReasonNone,
		"internal error":                                                    ReasonNone,
		"":                                                                  ReasonNone,
	} {
		require.Equal(t, want, Classify(text), "%q", text)
	}
}

// Only a message that shows that the node lacks the transaction is a rejection.
// A low nonce is not, because the transaction itself may have used it.
func TestReasonResults(t *testing.T) {
	for r := range numReasons {
		switch r {
		case ReasonKnown:
			require.Equal(t, Accepted, r.Result())
		case ReasonNone, ReasonNonceTooLow, ReasonBusy:
			require.Equal(t, Unknown, r.Result(), "%v", r)
		default:
			require.Equal(t, Rejected, r.Result(), "%v", r)
		}
	}
	require.Equal(t, Unknown, Reason(99).Result())
}

// Each message has its own meaning alone, behind the words of a gateway, and
// before details. Inside of other words and texts it has none.
func TestClassifyMessages(t *testing.T) {
	for _, m := range meanings {
		for _, message := range m.texts {
			text := strings.ReplaceAll(message, "*", "0x12")
			for _, same := range []string{text, strings.ToUpper(text), "rpc error: " + text, "[0xab12]: " + text + ": 5 of 7", text + ", details", `error: "` + text + `"`} {
				require.Equal(t, m.reason, Classify(same), "%q", same)
			}
			if strings.HasPrefix(message, "*") {
				continue
			}
			for _, other := range []string{"un" + text, "not " + text, "block " + text, text + "er", text + "_x"} {
				require.NotEqual(t, Accepted, Classify(other).Result(), "%q", other)
				known := slices.ContainsFunc(meanings, func(m meaning) bool { return m.begins(other) })
				if m.reason != ReasonKnown && !known {
					require.Equal(t, ReasonNone, Classify(other), "%q", other)
				}
			}
		}
	}
}

// Texts of other errors that contain words of a known message.
func TestClassifyIsNoSearch(t *testing.T) {
	for _, text := range []string{
		"unknown transaction type: 48.",
		"unknown transaction",
		"block already known",
		"already known to be invalid",
		"transaction is not already known",
		"the header is already imported by another peer",
		"invalid sender: already known", // two meanings
		"nonce too low: replacement transaction underpriced",
		"exceeded the limit; account is underpriced",
	} {
		require.Equal(t, ReasonNone, Classify(text), "%q", text)
		require.Equal(t, Unknown, Classify(text).Result(), "%q", text)
	}
}

// A program that does not import eoa/blobs cannot send blobs.
func TestWithoutKZG(t *testing.T) {
	before := kzg
	defer UseKZG(before)
	UseKZG(KZG{})
	q := Request{Key: "a", Kind: Blob, To: &common.Address{1}, Blobs: noopBlobs}
	for _, err := range []error{q.Validate(), second(q.BlobHashes())} {
		require.ErrorIs(t, err, ErrInvalidRequest)
		require.ErrorIs(t, err, errNoKZG)
	}
}

func second[T any](_ T, err error) error { return err }

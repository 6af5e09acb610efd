package account

import "time"

func defaultRules() Rules {
	return Rules{
		Fees: DefaultFeePolicy(), Confirmations: 3, MaxInFlight: 100, MaxUnsure: 64, Batch: 100,
		Rebroadcast: 30 * time.Second, Retry: time.Second, GasMargin: 20, Retention: DefaultRetention(),
	}
}

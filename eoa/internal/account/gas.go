package account

// NeedsGas reports whether the job's gas must still be estimated.
func (j *Job) NeedsGas() bool { return j.Gas == 0 && !j.Noop }

// GasLimit returns the gas limit to sign for a request whose gas the node has
// estimated. It is the estimate plus the configured margin, capped at the limits of
// a block and of a transaction. If a node has refused the limit of an earlier
// attempt, no margin is added.
func (v *View) GasLimit(c *Rules, r *Record, estimate uint64) uint64 {
	if r.overGasLimit() > 0 {
		return estimate
	}
	limit := estimate + estimate/100*c.GasMargin
	for _, most := range []uint64{maxTxGas, v.LastLook.GasLimit} {
		if estimate <= most {
			limit = min(limit, most)
		}
	}
	return limit
}

// overGasLimit counts the attempts that nodes have refused because of their gas
// limit.
func (r *Record) overGasLimit() int {
	n := 0
	for i := range r.Attempts {
		if Classify(r.Attempts[i].Why) == ReasonGasLimit {
			n++
		}
	}
	return n
}

func (v *View) noopGas() uint64 {
	if v.delegated() {
		return noopGasDelegated
	}
	return noopGas
}

// delegated reports whether the account has code (EIP-7702). Nodes keep only one
// transaction of such an account at a time.
func (v *View) delegated() bool { return v.LastLook != nil && v.LastLook.Delegated }

package account

import "time"

// DropOld selects, from a page of records, the ended ones that Retention no longer
// keeps. newest is the highest known id.
func (v *View) DropOld(c *Rules, now time.Time, newest uint64, records []Record) Batch {
	b := v.Batch()
	for i := range records {
		if c.Retention.drops(now, newest, &records[i]) {
			b.Drop = append(b.Drop, records[i])
		}
	}
	return b
}

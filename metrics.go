package jamq

// Metrics contains functions of a host that receive the counts and measurements of a
// package. The names of counters and histograms are constants of the package that
// reports them. Present values, such as the number of waiting transactions, are not
// reported in this way, because each package has a method that returns them.
//
// A package may call the functions from several goroutines at the same time, and waits
// for them. They must therefore return quickly and must not call the package. A nil
// function is not called.
type Metrics struct {
	// Count adds n, which is at least 0, to a counter. label is one of the values that the
	// comment of the counter lists, or empty if the comment lists none.
	Count func(counter, label string, n int)
	// Observe adds a value to a histogram. The histogram's name ends with the unit of the
	// value, for example seconds.
	Observe func(histogram string, value float64)
}

// Add calls Count, if it is set.
func (m *Metrics) Add(counter, label string, n int) {
	if m.Count != nil {
		m.Count(counter, label, n)
	}
}

// Record calls Observe, if it is set.
func (m *Metrics) Record(histogram string, value float64) {
	if m.Observe != nil {
		m.Observe(histogram, value)
	}
}

//go:build !race

package bundlequeue

const raceEnabled = false

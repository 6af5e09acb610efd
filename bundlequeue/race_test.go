//go:build race

package bundlequeue

const raceEnabled = true

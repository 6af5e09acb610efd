//go:build race

package bundlequeue

// RaceEnabled makes the searches smaller under the race detector, which is ten times slower.
const RaceEnabled = true

//go:build unix

package load

import (
	"syscall"
	"time"
)

// processTime returns the processor time that this process has used, for node
// and sender together.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

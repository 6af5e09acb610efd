package load

import (
	"syscall"
	"time"
)

// processTime returns the processor time that this process has used, for node
// and sender together.
func processTime() time.Duration {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return elapsed(kernel) + elapsed(user)
}

// elapsed converts a number of intervals of 100 nanoseconds.
func elapsed(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// locks says that this system keeps others from a file.
const locks = true

// lock takes a file for as long as it is open, or reports that another one has it. A process that is killed lets go.
func lock(file *os.File) (taken bool, err error) {
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

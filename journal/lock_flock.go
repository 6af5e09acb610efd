//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"os"
	"syscall"
)

// locks reports whether the system can lock files.
const locks = true

// lock locks a file until it is closed or the process exits.
func lock(file *os.File) (taken bool, err error) {
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			// Another process has locked the file.
			return false, nil
		default:
			return err == nil, err
		}
	}
}

// Package smalldisk mounts a small file system, for tests with a full disk.
package smalldisk

package main

import "syscall"

// dieWithParent has the system kill a program when we are killed and cannot do so ourselves.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

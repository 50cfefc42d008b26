package main

import "syscall"

// dieWithParent makes the system kill a program when this process is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

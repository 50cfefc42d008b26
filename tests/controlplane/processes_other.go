//go:build !linux

package main

import "syscall"

// dieWithParent does nothing outside Linux: such programs keep running when their parent is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }

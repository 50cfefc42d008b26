//go:build !linux

package main

import "syscall"

// dieWithParent has no counterpart outside Linux: there, only a parent that is killed leaves such programs behind.
func dieWithParent() *syscall.SysProcAttr { return nil }

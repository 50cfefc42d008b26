package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// processes are programs that do not exit when their stdin is closed, and therefore must be killed.
type processes struct {
	mutex   sync.Mutex
	killed  bool
	running []*exec.Cmd
	alive   sync.WaitGroup
	ended   chan error
}

func (p *processes) start(program string, arguments []string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.killed {
		return fmt.Errorf("%s: not started, the control plane is stopping", program)
	}
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	// Not stdout, where the parent of this process waits for the "ready" line.
	command.Stdout = os.Stderr
	command.SysProcAttr = dieWithParent()
	if err := command.Start(); err != nil {
		return err
	}
	if p.ended == nil {
		p.ended = make(chan error, 8)
	}
	ended := p.ended
	p.alive.Go(func() {
		err := command.Wait()
		ended <- fmt.Errorf("%s ended: %v", filepath.Base(program), err)
	})
	p.running = append(p.running, command)
	return nil
}

// wait returns an error when one of the processes exits unexpectedly.
func (p *processes) wait() error {
	err := <-p.ended
	if !p.kill() {
		select {} // The caller of kill also ends this process.
	}
	return err
}

// kill returns after the processes have exited and their ports and files are free. It reports whether this was the
// first call.
func (p *processes) kill() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.killed {
		return false
	}
	p.killed = true
	for _, command := range p.running {
		_ = command.Process.Kill()
	}
	p.alive.Wait()
	return true
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// processes are programs that know nothing of our rule that a closed stdin means the end, and so have to be killed.
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
		return fmt.Errorf("%s: not started, we are stopping", program)
	}
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	// Not stdout, on which our own parent waits for the line that says "ready".
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

// wait returns when the first of them ends by itself, which none should.
func (p *processes) wait() error {
	err := <-p.ended
	if !p.kill() {
		select {} // Whoever has killed them also ends this process.
	}
	return err
}

// kill returns when they are gone, with their ports and files free again. It tells whether this was the first call.
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

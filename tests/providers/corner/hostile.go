package main

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// harm does what no provider should do. It is selected like the failures of trouble:
//
//	read PATH     reports the content of a file, or the names in a directory
//	write PATH    writes to a file, or to a new file in a directory
//	signal PID    sends a signal without an effect
//	orphans       starts processes that leave the session of the provider
//	orphans DIR   the same, without its environment; their ids are in files of the directory
//	noise         writes 50 MB to standard error, without line breaks at first
//	hang up       closes all connections to the client
//	gamble        panics in about every second call
func (r *trouble) harm(attribute, what string, diagnostics *diag.Diagnostics) {
	verb, argument, _ := strings.Cut(what, " ")
	report := func(text string, err error) {
		if err != nil {
			text = err.Error()
		}
		diagnostics.AddAttributeError(path.Root(attribute), "The outcome of "+verb, text)
	}
	switch {
	case verb == "read":
		report(read(argument))
	case verb == "write":
		report("done", write(argument))
	case verb == "signal":
		var process int
		_, err := fmt.Sscan(argument, &process)
		if err == nil {
			err = syscall.Kill(process, 0)
		}
		report("done", err)
	case verb == "orphans":
		report(r.orphans(argument))
	case verb == "noise":
		line := []byte(strings.Repeat("noise ", 1<<20))
		for range 8 {
			_, _ = syscall.Write(2, line)
		}
	case verb == "gamble":
		if rand.Intn(2) == 0 {
			panic("the provider panics at random")
		}
	case what == "hang up":
		// The sockets of this process; closing other files would stop the runtime.
		for file := 3; file < 64; file++ {
			_ = syscall.Shutdown(file, syscall.SHUT_RDWR)
		}
		select {}
	}
}

func read(name string) (string, error) {
	if entries, err := os.ReadDir(name); err == nil {
		return fmt.Sprint(entries), nil
	}
	content, err := os.ReadFile(name)
	return string(content), err
}

func write(name string) error {
	if about, err := os.Stat(name); err == nil && about.IsDir() {
		name = filepath.Join(name, "written")
	}
	return os.WriteFile(name, []byte("written by a provider"), 0o600)
}

// orphans starts two processes in sessions of their own: a child, and a child of a process that has exited. Their ids are
// in files of the directory, by default of the world.
func (r *trouble) orphans(hidden string) (string, error) {
	directory, variables := r.world.directory, os.Environ()
	if hidden != "" {
		directory, variables = hidden, []string{"PATH=" + os.Getenv("PATH")}
	}
	file := func(name string) string { return filepath.Join(directory, name) }
	child := exec.Command("sleep", "600")
	child.Env = variables
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return "", err
	}
	if err := os.WriteFile(file("child"), []byte(fmt.Sprint(child.Process.Pid)), 0o600); err != nil {
		return "", err
	}
	// The shell exits at once, so that nothing but the session connects its child with the provider.
	script := "setsid sh -c 'echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 600' '" + file("grandchild") + "' &"
	shell := exec.Command("sh", "-c", script)
	shell.Env = variables
	if err := shell.Run(); err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(file("grandchild")); err == nil {
			return "started", nil
		}
		time.Sleep(time.Millisecond)
	}
}

// Calls carries random histories of configurations out with OpenTofu, and writes down what it calls the providers with,
// one JSON document a line. Between OpenTofu and each provider is this same program, which passes every call on.
//
//	go run . -tofu PROGRAM | zstd -19 --long=27 -f -o ../calls.jsonl.zst
//
// A line is a history. Messages are those of the plugin protocol, in hexadecimal digits.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

func main() {
	if os.Getenv(handshake.MagicCookieKey) != "" {
		serveRecorder()
		return
	}
	tofu := flag.String("tofu", "tofu", "the program of OpenTofu")
	seed := flag.Int64("seed", 1, "where the random numbers begin")
	only := flag.String("only", "", "only the histories with this in their name")
	count := flag.Int("count", 0, "how many histories of each kind; 0 is what the kind says")
	among := flag.String("providers", strings.Join(providers, ","), "the providers to record")
	parallel := flag.Int("parallel", 3, "how many histories run at the same time")
	flag.Parse()
	providers = strings.Split(*among, ",")
	check(record(*tofu, *seed, *only, *count, *parallel))
}

func record(tofu string, seed int64, only string, count, parallel int) error {
	directory, err := os.MkdirTemp("", "calls")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	programs, err := build(providers)
	if err != nil {
		return err
	}
	place, err := newPlace(directory, tofu, programs, providers)
	if err != nil {
		return err
	}
	var histories []*History
	for number, plot := range plots {
		if count > 0 {
			plot.count = count
		}
		for i := range plot.count {
			random := &source{rand.New(rand.NewSource(seed<<32 + int64(number)<<16 + int64(i)))}
			history := plot.write(random)
			history.Name = fmt.Sprintf("%s %d", plot.name, i+1)
			histories = append(histories, history)
		}
	}
	for _, provider := range sorted(unreachable) {
		if !slices.Contains(providers, provider) {
			continue
		}
		random := &source{rand.New(rand.NewSource(seed))}
		ofTypes, err := place.byType(provider, map[string]any{provider: unreachable[provider]}, random)
		if err != nil {
			return err
		}
		histories = append(histories, ofTypes...)
	}
	unwanted := func(provider string) bool { return !slices.Contains(providers, provider) }
	histories = slices.DeleteFunc(histories, func(history *History) bool {
		return !strings.Contains(history.Name, only) || slices.ContainsFunc(history.Providers, unwanted)
	})
	used := map[string]bool{}
	for _, history := range histories {
		history.onlyUsed()
		history.Sources = map[string]string{}
		for _, provider := range history.Providers {
			used[provider] = true
			if history.inCluster() {
				used[clusterConfig] = true
			}
			history.Sources[provider] = address(provider)
		}
	}
	if place.files, err = serve(directory, used); err != nil {
		return err
	}
	return write(runAll(place, histories, parallel))
}

func runAll(place *place, histories []*History, parallel int) []*History {
	var waiting sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i, history := range histories {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			turns <- struct{}{}
			defer func() { <-turns }()
			if err := place.run(history); err != nil {
				fmt.Fprintf(os.Stderr, "%s is left out: %v\n", history.Name, err)
				histories[i] = nil
				return
			}
			if history.cut(); len(history.Steps) == 0 {
				histories[i] = nil
			}
		}()
	}
	waiting.Wait()
	return slices.DeleteFunc(histories, func(history *History) bool { return history == nil })
}

func write(histories []*History) error {
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, history := range histories {
		if err := lines.Encode(history); err != nil {
			return err
		}
	}
	return out.Flush()
}

// build builds the providers next to their modules' other programs, and returns their directory.
func build(names []string) (string, error) {
	directory, err := filepath.Abs("../../../target/recorded-providers")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		module := filepath.Join("../../providers", name)
		text, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err != nil {
			return "", err
		}
		wanted := "."
		for line := range strings.Lines(string(text)) {
			if tool, ok := strings.CutPrefix(line, "tool "); ok {
				wanted = strings.TrimSpace(tool)
			}
		}
		fmt.Fprintln(os.Stderr, "building", name)
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(directory, name), wanted)
		command.Dir, command.Stderr = module, os.Stderr
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if err := command.Run(); err != nil {
			return "", fmt.Errorf("building %s: %w", name, err)
		}
	}
	return directory, nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

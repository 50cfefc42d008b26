package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// encodedCall is a call whose messages are lines of the table.
type encodedCall struct {
	Provider string `json:"provider"`
	Method   string `json:"method"`
	Request  string `json:"request"`
	Response string `json:"response,omitempty"`
	Failure  string `json:"failure,omitempty"`
	// Count is how often the same call was made.
	Count int `json:"count"`
}

// place is where histories are carried out.
type place struct {
	tofu string
	// programs holds the real providers, recorders a directory for each provider with this program.
	programs, recorders string
	settings            string
	// files is the directory of the files that each history gets.
	files string
}

func newPlace(directory, tofu, programs string, providers []string) (*place, error) {
	p := &place{tofu: tofu, programs: programs, recorders: filepath.Join(directory, "recorders"), settings: filepath.Join(directory, "tofu.rc")}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var settings strings.Builder
	settings.WriteString("provider_installation {\n  dev_overrides {\n")
	for _, name := range providers {
		recorder := filepath.Join(p.recorders, name)
		if err := os.MkdirAll(recorder, 0o700); err != nil {
			return nil, err
		}
		link := filepath.Join(recorder, programPrefix+name)
		if err := os.Symlink(own, link); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		fmt.Fprintf(&settings, "    %q = %q\n", "registry.opentofu.org/"+address(name), recorder)
	}
	settings.WriteString("  }\n}\n")
	return p, os.WriteFile(p.settings, []byte(settings.String()), 0o600)
}

// run carries a history out with OpenTofu, and writes the calls into its steps.
func (p *place) run(history *History) error {
	directory, err := os.MkdirTemp("", "history")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	if err := os.Mkdir(filepath.Join(directory, "world"), 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(directory, os.DirFS(p.files)); err != nil {
		return err
	}
	for number, step := range history.Steps {
		if err := p.step(directory, history, step); err != nil {
			return fmt.Errorf("step %d: %w", number+1, err)
		}
	}
	return nil
}

func (p *place) step(directory string, history *History, step *Step) error {
	configuration, err := step.configuration(history.Providers)
	if err != nil {
		return err
	}
	if step.before != nil {
		state, err := readState(directory)
		if err != nil {
			return err
		}
		if err := step.before(step, state); err != nil {
			return err
		}
	}
	for path, text := range step.Outside {
		path = filepath.Join(directory, path)
		if text == "" {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range step.Taint {
		if _, err := p.call(directory, step, "taint", "-allow-missing", step.find(name).address()); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(directory, "main.tf.json"), configuration, 0o600); err != nil {
		return err
	}
	if _, err := readCalls(filepath.Join(directory, "calls")); err != nil {
		return err
	}
	arguments := map[string][]string{
		"apply": {"apply"}, "refresh": {"apply", "-refresh-only"}, "destroy": {"destroy"},
	}[step.Command]
	output, err := p.call(directory, step, append(arguments, "-auto-approve", "-input=false")...)
	step.Failed = err != nil
	calls, problem := readCalls(filepath.Join(directory, "calls"))
	if problem != nil {
		return problem
	}
	if len(calls) == 0 {
		return fmt.Errorf("nothing was called: %s", output)
	}
	if os.Getenv("SHOW") != "" {
		fmt.Fprintf(os.Stderr, "%s: %s\n%s\n", history.Name, configuration, output)
	}
	step.Calls = encodeCalls(calls)
	return nil
}

func (p *place) call(directory string, step *Step, arguments ...string) ([]byte, error) {
	command := exec.Command(p.tofu, append(arguments, "-no-color")...)
	command.Dir, command.Env = directory, p.environment(directory, step)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	return output.Bytes(), err
}

func (p *place) environment(directory string, step *Step) []string {
	all := append(os.Environ(),
		"TF_CLI_CONFIG_FILE="+p.settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		programsVariable+"="+p.programs, callsVariable+"="+filepath.Join(directory, "calls"))
	for name, value := range step.Environment {
		all = append(all, name+"="+value)
	}
	return all
}

// encodeCalls keeps one of equal calls, in the order in which they were made first.
func encodeCalls(calls []Call) []encodedCall {
	var all []encodedCall
	at := map[string]int{}
	for _, call := range calls {
		key := fmt.Sprintf("%s %s %x %x %s", call.Provider, call.Method, call.Request, call.Response, call.Failure)
		if known, ok := at[key]; ok {
			all[known].Count++
			continue
		}
		at[key] = len(all)
		all = append(all, encodedCall{
			Provider: call.Provider, Method: call.Method, Failure: call.Failure, Count: 1,
			Request: hex.EncodeToString(call.Request), Response: hex.EncodeToString(call.Response),
		})
	}
	return all
}

// state is the part of OpenTofu's state that changes outside need: the attributes of objects by address.
type state map[string]map[string]any

func readState(directory string) (*state, error) {
	found := state{}
	text, err := os.ReadFile(filepath.Join(directory, "terraform.tfstate"))
	if errors.Is(err, os.ErrNotExist) {
		return &found, nil
	}
	if err != nil {
		return nil, err
	}
	var document struct {
		Resources []struct {
			Type, Name string
			Instances  []struct{ Attributes map[string]any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	for _, resource := range document.Resources {
		for _, instance := range resource.Instances {
			found[resource.Type+"."+resource.Name] = instance.Attributes
		}
	}
	return &found, nil
}

// cut ends a history before a step that cannot be compared.
func (h *History) cut() {
	for i, step := range h.Steps {
		if why := step.unusable(i == 0); why != "" {
			fmt.Fprintf(os.Stderr, "%s ends before step %d: %s\n", h.Name, i+1, why)
			h.Steps = h.Steps[:i]
			return
		}
	}
}

// unusable says why a step cannot be compared. In a repetition, equal requests cannot be told apart. After an error in
// the configuration or the plan of one object, OpenTofu reads and plans no more of the others, and changes none.
func (s *Step) unusable(first bool) string {
	changes := map[string]string{}
	configured := false
	for _, call := range s.Calls {
		configured = configured || strings.HasPrefix(call.Method, "Configure")
		if call.Method != "ApplyResourceChange" {
			continue
		}
		if before, ok := changes[call.Request]; ok && before != call.Response {
			return "two objects are created with the same request"
		}
		changes[call.Request] = call.Response
	}
	if s.Failed && len(changes) == 0 && len(s.Objects) > 1 {
		return "the plan failed"
	}
	if s.Failed && !configured && !first {
		return "the configuration is not valid"
	}
	return ""
}

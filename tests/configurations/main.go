// Command configurations writes down what OpenTofu plans and does with the configurations in `cases`, each step with the
// files of its directory over those before it: `golden.json` of each case, which the tests replay.
//
//	go run . TOFU PROVIDER [CASE...]
//
// TOFU is OpenTofu's program, and PROVIDER that of tests/providers/cloud.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

func main() {
	tofu, err1 := filepath.Abs(os.Args[1])
	provider, err2 := filepath.Abs(os.Args[2])
	check(err1, err2)
	cases := os.Args[3:]
	if len(cases) == 0 {
		cases = names("cases")
	}
	for _, name := range cases {
		golden := record(name, tofu, provider)
		data := bytes.Buffer{}
		encoder := json.NewEncoder(&data)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		check(encoder.Encode(golden), os.WriteFile(filepath.Join("cases", name, "golden.json"), data.Bytes(), 0o644))
		fmt.Println(name)
	}
}

type world struct {
	tofu, directory, work string
}

// step is what OpenTofu plans, and then the values of the objects and the outputs.
type step struct {
	Changes map[string]change `json:"changes"`
	// What the outputs will be: `after` as far as it is known.
	OutputChanges map[string]change `json:"output_changes"`
	Objects       map[string]any    `json:"objects"`
	Outputs       map[string]any    `json:"outputs"`
	// Severity, place and summary of what it says about the plan.
	Problems []string `json:"problems,omitempty"`
	// Of the last step: the objects that still exist.
	Left []string `json:"left"`
}

// change has sensitive values as {"sensitive":true}.
type change struct {
	Actions      string `json:"actions"`
	Before       any    `json:"before,omitempty"`
	After        any    `json:"after,omitempty"`
	Unknown      any    `json:"unknown,omitempty"`
	ReplacePaths any    `json:"replace_paths,omitempty"`
	Previous     string `json:"previous_address,omitempty"`
	Imported     bool   `json:"imported,omitempty"`
}

func record(name, tofu, provider string) map[string]step {
	directory, err := os.MkdirTemp("", "golden")
	check(err)
	defer os.RemoveAll(directory)
	w := world{tofu, directory, filepath.Join(directory, "work")}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	link(provider, filepath.Join(directory, "mirror/example.com/purlin/cloud/1.0.0", platform, "terraform-provider-cloud"))
	golden := map[string]step{}
	for _, step := range names(filepath.Join("cases", name)) {
		overlay(filepath.Join("cases", name, step), w.work)
		w.ok("init", "-input=false", "-plugin-dir="+filepath.Join(directory, "mirror"))
		golden[step] = w.step()
	}
	last := w.step("-destroy")
	last.Left = left(filepath.Join(w.work, "objects"))
	golden["destroy"] = last
	return golden
}

func left(objects string) []string {
	found := []string{}
	for _, kind := range names(objects) {
		entries, err := os.ReadDir(filepath.Join(objects, kind))
		check(err)
		for _, entry := range entries {
			found = append(found, entry.Name())
		}
	}
	slices.Sort(found)
	return found
}

// overlay copies files over others.
func overlay(from, to string) {
	check(filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		check(err)
		if entry.IsDir() {
			return nil
		}
		relative, err := filepath.Rel(from, path)
		check(err)
		data, err := os.ReadFile(path)
		check(err, os.MkdirAll(filepath.Dir(filepath.Join(to, relative)), 0o755))
		return os.WriteFile(filepath.Join(to, relative), data, 0o644)
	}))
}

func (w world) step(options ...string) step {
	result := step{Objects: map[string]any{}}
	out, err := w.run(append([]string{"plan", "-json", "-input=false", "-out=saved"}, options...)...)
	result.Problems = problems(out)
	if err == nil {
		result.Changes, result.OutputChanges = planned(w.json("show", "-json", "saved"))
		w.ok("apply", "-input=false", "saved")
		w.again(options)
	}
	if values, ok := w.json("show", "-json")["values"].(map[string]any); ok {
		objects(values["root_module"].(map[string]any), result.Objects)
	}
	result.Outputs = w.json("output", "-json")
	for _, output := range result.Outputs {
		if output := output.(map[string]any); output["sensitive"] == true {
			delete(output, "value")
		}
	}
	return result
}

// again checks that a second plan is empty.
func (w world) again(options []string) {
	w.ok(append([]string{"plan", "-input=false", "-out=saved"}, options...)...)
	if changes, outputs := planned(w.json("show", "-json", "saved")); len(changes)+len(outputs) > 0 {
		panic(fmt.Sprint("the second plan is not empty: ", changes, outputs))
	}
}

func planned(plan map[string]any) (map[string]change, map[string]change) {
	changes, outputs := map[string]change{}, map[string]change{}
	for _, one := range list(plan["resource_changes"]) {
		resource := one.(map[string]any)
		if resource["action_reason"] == "read_because_check_nested" {
			continue // What a check reads, it reads in each apply.
		}
		address := resource["address"].(string)
		if deposed, ok := resource["deposed"].(string); ok {
			address += " (deposed " + deposed + ")"
		}
		it := changeOf(resource["change"].(map[string]any))
		it.Previous, _ = resource["previous_address"].(string)
		if it.Actions != "no-op" || it.Previous != "" || it.Imported {
			changes[address] = it
		}
	}
	all, _ := plan["output_changes"].(map[string]any)
	for name, one := range all {
		if it := changeOf(one.(map[string]any)); it.Actions != "no-op" {
			outputs[name] = it
		}
	}
	return changes, outputs
}

func changeOf(it map[string]any) change {
	words := []string{}
	for _, action := range list(it["actions"]) {
		words = append(words, action.(string))
	}
	_, imported := it["importing"]
	return change{
		Actions: strings.Join(words, ","),
		Before:  masked(it["before"], it["before_sensitive"]), After: masked(it["after"], it["after_sensitive"]),
		Unknown: marks(it["after_unknown"]), ReplacePaths: it["replace_paths"], Imported: imported,
	}
}

// masked has {"sensitive":true} in place of each sensitive value that is not null.
func masked(value, sensitive any) any {
	if value == nil {
		return nil
	}
	switch marks := sensitive.(type) {
	case bool:
		if marks {
			return map[string]any{"sensitive": true}
		}
	case map[string]any:
		if fields, ok := value.(map[string]any); ok {
			for name := range fields {
				fields[name] = masked(fields[name], marks[name])
			}
		}
	case []any:
		if items, ok := value.([]any); ok {
			for index := range min(len(items), len(marks)) {
				items[index] = masked(items[index], marks[index])
			}
		}
	}
	return value
}

// marks leaves out what is not marked.
func marks(value any) any {
	switch value := value.(type) {
	case bool:
		if value {
			return true
		}
	case map[string]any:
		maps.DeleteFunc(value, func(name string, inner any) bool { return marks(inner) == nil })
		for name, inner := range value {
			value[name] = marks(inner)
		}
		if len(value) > 0 {
			return value
		}
	case []any:
		inner := make([]any, len(value))
		for index := range value {
			inner[index] = marks(value[index])
		}
		if slices.ContainsFunc(inner, func(one any) bool { return one != nil }) {
			return inner
		}
	}
	return nil
}

func objects(module map[string]any, into map[string]any) {
	for _, one := range list(module["resources"]) {
		if resource := one.(map[string]any); resource["mode"] == "managed" {
			into[resource["address"].(string)] = masked(resource["values"], resource["sensitive_values"])
		}
	}
	for _, child := range list(module["child_modules"]) {
		objects(child.(map[string]any), into)
	}
}

func problems(lines string) (found []string) {
	for line := range strings.Lines(lines) {
		var message struct {
			Diagnostic *struct {
				Severity, Summary string
				Range             struct {
					Filename string
					Start    struct{ Line int }
				}
			}
		}
		if json.Unmarshal([]byte(line), &message) == nil && message.Diagnostic != nil {
			it := message.Diagnostic
			found = append(found, fmt.Sprintf("%s: %s:%d: %s", it.Severity, it.Range.Filename, it.Range.Start.Line, it.Summary))
		}
	}
	slices.Sort(found)
	return found
}

// random is the form of random IDs, which are all the same in what is written down.
var random = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

func (w world) run(arguments ...string) (string, error) {
	command := exec.Command(w.tofu, arguments...)
	command.Dir = w.work
	command.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE=", "CHECKPOINT_DISABLE=1")
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	err := command.Run()
	text := random.ReplaceAllString(out.String(), "UUID")
	if err != nil {
		return text, fmt.Errorf("%v: %w: %s%s", arguments, err, out.String(), errors.String())
	}
	return text, nil
}

func (w world) ok(arguments ...string) string {
	out, err := w.run(arguments...)
	check(err)
	return out
}

func (w world) json(arguments ...string) map[string]any {
	result := map[string]any{}
	check(json.Unmarshal([]byte(w.ok(arguments...)), &result))
	return result
}

func link(from, to string) {
	check(os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(from, to))
}

// names returns the names of the directories in a directory, sorted.
func names(directory string) (found []string) {
	entries, err := os.ReadDir(directory)
	check(err)
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, entry.Name())
		}
	}
	return found
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

func check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
}

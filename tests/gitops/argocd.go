package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"
)

// The files of Argo CD's own tests of such scripts.
type cases struct {
	// health_test.yaml
	Tests []struct {
		InputPath    string            `json:"inputPath"`
		HealthStatus map[string]string `json:"healthStatus"`
	} `json:"tests"`
	// action_test.yaml
	DiscoveryTests []struct {
		InputPath string           `json:"inputPath"`
		Result    []map[string]any `json:"result"`
	} `json:"discoveryTests"`
	ActionTests []struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	} `json:"actionTests"`
}

// Runs the cases of a directory in the layout of Argo CD's `resource_customizations`, and prints each one that passes.
// Reports all that fail.
func runCases(what, directory string) error {
	names := map[string]string{"health": "health_test.yaml", "actions": "action_test.yaml"}
	var found cases
	if err := read(&found, directory, names[what]); err != nil {
		return err
	}
	var failures []error
	check := func(name string, got any, err error, wanted any) {
		switch {
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
		case !reflect.DeepEqual(got, wanted):
			text, _ := json.MarshalIndent(got, "", "  ")
			failures = append(failures, fmt.Errorf("%s: the script returns %s", name, text))
		default:
			fmt.Println("passed:", name)
		}
	}
	for _, test := range found.Tests {
		got, err := runScript(directory, "health.lua", test.InputPath)
		check(test.InputPath, got, err, plain(test.HealthStatus))
	}
	for _, test := range found.DiscoveryTests {
		got, err := runScript(directory, "discovery.lua", test.InputPath)
		check("discovery: "+test.InputPath, actionsOf(got), err, plain(test.Result))
	}
	for _, test := range found.ActionTests {
		got, err := runScript(directory, filepath.Join(test.Action, "action.lua"), test.InputPath)
		var wanted any
		err = errors.Join(err, read(&wanted, directory, test.ExpectedOutputPath))
		check(test.Action+": "+test.InputPath, got, err, wanted)
	}
	return errors.Join(failures...)
}

// The actions of a discovery script, in the form of the expected result.
func actionsOf(found any) any {
	var actions []any
	all, _ := found.(map[string]any)
	for name, about := range all {
		action := map[string]any{"name": name}
		// Lua has no empty list: an action without fields is one.
		if fields, ok := about.(map[string]any); ok {
			for key, value := range fields {
				action[key] = value
			}
		}
		actions = append(actions, action)
	}
	slices.SortFunc(actions, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
	})
	return plain(actions)
}

// Runs a script of a directory with an object of it.
func runScript(directory, script, input string) (any, error) {
	code, err := os.ReadFile(filepath.Join(directory, script))
	if err != nil {
		return nil, err
	}
	var object any
	if err := read(&object, directory, input); err != nil {
		return nil, err
	}
	return evaluate(string(code), object)
}

// Runs a script with the global `obj`, as Argo CD does: with the base functions, tables and the time, and nothing else.
func evaluate(code string, object any) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	}
	for name, open := range libraries {
		call := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	state.PreloadModule(lua.OsLibName, safeOS)
	state.SetGlobal("obj", luajson.DecodeValue(state, object))
	if err := state.DoString(code); err != nil {
		return nil, err
	}
	text, err := luajson.Encode(state.Get(-1))
	if err != nil {
		return nil, err
	}
	var result any
	return result, errors.Join(err, json.Unmarshal(text, &result))
}

// The part of the library `os` that Argo CD allows and our scripts use. The time is fixed, for the expected output.
func safeOS(state *lua.LState) int {
	date := func(state *lua.LState) int {
		state.Push(lua.LString("2026-01-01T00:00:00Z"))
		return 1
	}
	state.Push(state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{"date": date}))
	return 1
}

func read(into any, directory, file string) error {
	text, err := os.ReadFile(filepath.Join(directory, file))
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// The value with the types that JSON decodes to.
func plain(value any) any {
	text, _ := json.Marshal(value)
	var decoded any
	_ = json.Unmarshal(text, &decoded)
	return decoded
}

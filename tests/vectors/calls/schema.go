package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The schemas of providers, as `tofu providers schema -json` prints them.
type schemas struct {
	Provider map[string]providerSchemas `json:"provider_schemas"`
}

type providerSchemas struct {
	Resources map[string]struct{ Block *block } `json:"resource_schemas"`
	Data      map[string]struct{ Block *block } `json:"data_source_schemas"`
}

type block struct {
	Attributes map[string]attribute   `json:"attributes"`
	Blocks     map[string]nestedBlock `json:"block_types"`
}

type attribute struct {
	Type       json.RawMessage `json:"type"`
	Required   bool            `json:"required"`
	Optional   bool            `json:"optional"`
	Deprecated bool            `json:"deprecated"`
}

type nestedBlock struct {
	Nesting string `json:"nesting_mode"`
	Block   *block `json:"block"`
	Least   int    `json:"min_items"`
	Most    int    `json:"max_items"`
}

// schemas asks the provider for its schemas.
func (p *place) schemas(provider string) (*providerSchemas, error) {
	directory, err := os.MkdirTemp("", "schemas")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	step := &Step{}
	configuration, err := step.configuration([]string{provider})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(directory, "main.tf.json"), configuration, 0o600); err != nil {
		return nil, err
	}
	command := exec.Command(p.tofu, "providers", "schema", "-json")
	command.Dir, command.Env = directory, p.environment(directory, step)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the schemas of %s: %w", provider, err)
	}
	var all schemas
	if err := json.Unmarshal(output, &all); err != nil {
		return nil, err
	}
	found := all.Provider["registry.opentofu.org/"+address(provider)]
	return &found, nil
}

// byType are the histories of one object of each type: two configurations that only the schema suggests.
func (p *place) byType(provider string, configurations map[string]any, random *source) ([]*History, error) {
	schemas, err := p.schemas(provider)
	if err != nil {
		return nil, err
	}
	var histories []*History
	for _, name := range sorted(schemas.Resources) {
		step := &Step{Command: "apply", Configurations: configurations, Objects: []*Object{
			{Name: "o1", Type: name, Config: random.block(schemas.Resources[name].Block, 0)},
		}}
		next := step.clone()
		next.Objects[0].Config = random.block(schemas.Resources[name].Block, 0)
		histories = append(histories, &History{Name: "type " + name, Providers: []string{provider}, Steps: []*Step{step, next}})
	}
	return histories, nil
}

// block is a configuration with the required arguments, and some of the others.
func (s *source) block(of *block, depth int) map[string]any {
	all := map[string]any{}
	for _, name := range sorted(of.Attributes) {
		attribute := of.Attributes[name]
		if name == "id" || name == "generate_name" {
			// Every type of the older SDKs has an id, which cannot be configured. The other conflicts with `name`.
			continue
		}
		if attribute.Required || attribute.Optional && !attribute.Deprecated && s.one(3) {
			all[name] = s.typed(attribute.Type, name)
		}
	}
	for _, name := range sorted(of.Blocks) {
		nested := of.Blocks[name]
		least := nested.Least
		if least == 0 && depth < 3 && s.one(4) {
			least = 1
		}
		if least == 0 || name == "timeouts" {
			continue
		}
		if nested.Nesting == "single" || nested.Nesting == "group" {
			all[name] = s.block(nested.Block, depth+1)
			continue
		}
		blocks := []any{}
		for range least {
			blocks = append(blocks, s.block(nested.Block, depth+1))
		}
		all[name] = blocks
	}
	return all
}

// typed is a value of a type, and often one that an argument of this name accepts.
func (s *source) typed(ty json.RawMessage, name string) any {
	var kind string
	if json.Unmarshal(ty, &kind) == nil {
		switch kind {
		case "number":
			return 1 + s.Intn(9)
		case "bool":
			return s.one(2)
		case "string":
			return s.named(name)
		}
		return "x"
	}
	var parts []json.RawMessage
	check(json.Unmarshal(ty, &parts))
	check(json.Unmarshal(parts[0], &kind))
	switch kind {
	case "list", "set":
		return []any{s.typed(parts[1], name)}
	case "map":
		return map[string]any{"key": s.typed(parts[1], name)}
	case "object":
		var fields map[string]json.RawMessage
		check(json.Unmarshal(parts[1], &fields))
		all := map[string]any{}
		for _, field := range sorted(fields) {
			all[field] = s.typed(fields[field], field)
		}
		return all
	}
	return []any{}
}

func (s *source) named(name string) any {
	switch {
	case strings.Contains(name, "url") || strings.Contains(name, "uri"):
		return "https://example.com/" + pick(s, words[:3])
	case strings.Contains(name, "json"):
		return `{"a": 1}`
	case strings.HasSuffix(name, "port"):
		return "8080"
	case name == "kind":
		return "ServiceAccount"
	default:
		return pick(s, words[:3])
	}
}

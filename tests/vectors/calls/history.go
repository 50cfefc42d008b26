package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// History is a configuration and its changes, in a form that belongs neither to OpenTofu nor to Purlin.
type History struct {
	Name string `json:"name"`
	// Sources are the addresses of the providers that it uses, by name.
	Sources   map[string]string `json:"providers"`
	Providers []string          `json:"-"`
	Steps     []*Step           `json:"steps"`
}

// Step is the whole configuration after a change, and what was called when it was carried out.
type Step struct {
	// Command is `apply`, `refresh` or `destroy`.
	Command string `json:"command"`
	// Outside says what changed outside before the command: files, by path. An empty text removes one.
	Outside map[string]string `json:"outside,omitempty"`
	// Environment has variables of the providers.
	Environment map[string]string `json:"environment,omitempty"`
	// Taint names the objects that are marked for replacement before the command.
	Taint []string `json:"taint,omitempty"`
	// Configurations are those of the providers that have one.
	Configurations map[string]any `json:"configurations,omitempty"`
	Objects        []*Object      `json:"objects"`
	// Failed reports that OpenTofu reported an error.
	Failed bool          `json:"failed,omitempty"`
	Calls  []encodedCall `json:"calls"`

	// before is called with the directory of the run and the state of OpenTofu.
	before func(step *Step, state *state) error
}

// Object is a resource or a data source. References in its configuration have the form `${name.attribute}`.
type Object struct {
	Name                string         `json:"name"`
	Type                string         `json:"type"`
	Data                bool           `json:"data,omitempty"`
	Config              map[string]any `json:"config"`
	DependsOn           []string       `json:"depends_on,omitempty"`
	CreateBeforeDestroy bool           `json:"create_before_destroy,omitempty"`
	IgnoreChanges       []string       `json:"ignore_changes,omitempty"`
	// Import is the id of an existing object.
	Import string `json:"import,omitempty"`
	// Identity is that of an existing object, instead of its id.
	Identity map[string]any `json:"identity,omitempty"`
	// MovedFrom is the previous name.
	MovedFrom string `json:"moved_from,omitempty"`
	// MovedType is the previous type if it was another.
	MovedType string `json:"moved_type,omitempty"`
}

// sources are the addresses of the providers that are not those of HashiCorp.
var sources = map[string]string{
	"corner": "purlin/corner", "legacy": "purlin/legacy", "kubectl": "gavinbunney/kubectl", "kafka": "mongey/kafka",
	"rabbitmq": "cyrilgdn/rabbitmq", "keycloak": "keycloak/keycloak",
}

func address(provider string) string {
	if address, ok := sources[provider]; ok {
		return address
	}
	return "hashicorp/" + provider
}

// configuration is the step in the JSON syntax of OpenTofu.
func (s *Step) configuration(providers []string) ([]byte, error) {
	required := map[string]any{}
	for _, name := range providers {
		required[name] = map[string]any{"source": address(name)}
	}
	body := map[string]any{"terraform": map[string]any{"required_providers": required}}
	if len(s.Configurations) > 0 {
		body["provider"] = s.Configurations
	}
	addresses := map[string]string{}
	for _, object := range s.Objects {
		addresses[object.key()] = object.address()
	}
	var imports, moves []any
	resources, data := map[string]map[string]any{}, map[string]map[string]any{}
	for _, object := range s.Objects {
		kinds := resources
		if object.Data {
			kinds = data
		}
		if kinds[object.Type] == nil {
			kinds[object.Type] = map[string]any{}
		}
		kinds[object.Type][object.Name] = object.body(addresses)
		if object.Import != "" {
			imports = append(imports, map[string]any{"to": object.address(), "id": object.Import})
		}
		if object.Identity != nil {
			imports = append(imports, map[string]any{"to": object.address(), "identity": object.Identity})
		}
		if object.MovedFrom != "" {
			from := object.Type
			if object.MovedType != "" {
				from = object.MovedType
			}
			moves = append(moves, map[string]any{"from": from + "." + object.MovedFrom, "to": object.address()})
		}
	}
	for name, section := range map[string]any{"resource": resources, "data": data, "import": imports, "moved": moves} {
		if text, _ := json.Marshal(section); len(text) > 2 && string(text) != "null" {
			body[name] = section
		}
	}
	return json.MarshalIndent(body, "", "  ")
}

func (o *Object) key() string {
	if o.Data {
		return "data." + o.Name
	}
	return o.Name
}

func (o *Object) address() string {
	if o.Data {
		return "data." + o.Type + "." + o.Name
	}
	return o.Type + "." + o.Name
}

func (o *Object) body(addresses map[string]string) map[string]any {
	body := translate(o.Config, addresses).(map[string]any)
	var depends []string
	for _, name := range o.DependsOn {
		depends = append(depends, addresses[name])
	}
	if depends != nil {
		body["depends_on"] = depends
	}
	lifecycle := map[string]any{}
	if o.CreateBeforeDestroy {
		lifecycle["create_before_destroy"] = true
	}
	if o.IgnoreChanges != nil {
		lifecycle["ignore_changes"] = o.IgnoreChanges
	}
	if len(lifecycle) > 0 {
		body["lifecycle"] = lifecycle
	}
	return body
}

var reference = regexp.MustCompile(`\$\{((?:data\.)?[a-z]\w*)\b`)

// translate replaces the names in references by the addresses of OpenTofu.
func translate(value any, addresses map[string]string) any {
	switch value := value.(type) {
	case string:
		return reference.ReplaceAllStringFunc(value, func(found string) string { return "${" + addresses[found[2:]] })
	case []any:
		all := make([]any, len(value))
		for i, item := range value {
			all[i] = translate(item, addresses)
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for key, item := range value {
			all[key] = translate(item, addresses)
		}
		return all
	default:
		return value
	}
}

// clone copies what the next step changes.
func (s *Step) clone() *Step {
	next := &Step{
		Command: "apply", Configurations: s.Configurations, Environment: maps.Clone(s.Environment),
		Objects: make([]*Object, len(s.Objects)),
	}
	for i, object := range s.Objects {
		copied := *object
		copied.Config = maps.Clone(object.Config)
		// Both take place once.
		copied.Import, copied.Identity, copied.MovedFrom, copied.MovedType = "", nil, "", ""
		next.Objects[i] = &copied
	}
	return next
}

func (s *Step) find(name string) *Object {
	at := slices.IndexFunc(s.Objects, func(object *Object) bool { return object.key() == name })
	if at < 0 {
		return nil
	}
	return s.Objects[at]
}

// onlyUsed drops the providers without an object.
func (h *History) onlyUsed() {
	used := func(provider string) bool {
		return slices.ContainsFunc(h.Steps, func(step *Step) bool {
			return slices.ContainsFunc(step.Objects, func(object *Object) bool {
				return object.Type == provider || strings.HasPrefix(object.Type, provider+"_")
			})
		})
	}
	h.Providers = slices.DeleteFunc(h.Providers, func(provider string) bool { return !used(provider) })
	for _, step := range h.Steps {
		configurations := map[string]any{}
		for provider, configuration := range step.Configurations {
			if used(provider) {
				configurations[provider] = configuration
			}
		}
		step.Configurations = configurations
	}
}

package main

import (
	"fmt"
	"path/filepath"
)

// plot is a kind of histories, with how many of them there are.
type plot struct {
	name  string
	count int
	write func(random *source) *History
}

func inFolder(provider string) map[string]any {
	return map[string]any{provider: map[string]any{"folder": "world"}}
}

var plots = []plot{
	{"random", 30, tale(nil, randoms...)},
	{"time", 15, tale(nil, times...)},
	{"tls", 20, tale(nil, keys...)},
	{"local", 20, tale(nil, files...)},
	{"corner", 60, tale(inFolder("corner"), corners...)},
	{"legacy", 45, tale(inFolder("legacy"), legacies...)},
	{"trouble", 20, tale(inFolder("corner"), troubles...)},
	{"mixed", 25, tale(inFolder("corner"), mixed()...)},
	{"upgrade", 8, upgrade},
	{"move", 12, move},
	{"http", 12, tale(nil, pages...)},
	{"kafka", 20, tale(broker, topics...)},
	{"kubernetes", 30, tale(map[string]any{"kubernetes": map[string]any{"config_path": clusterConfig}}, inNamespaces...)},
	{"kubectl", 12, tale(map[string]any{"kubectl": map[string]any{"config_path": clusterConfig}}, documents...)},
}

// providers are all providers that are recorded.
var providers = []string{
	"corner", "http", "kafka", "keycloak", "kubectl", "kubernetes", "legacy", "local", "rabbitmq", "random", "time", "tls",
}

// unreachable are the configurations of providers whose servers do not exist: they plan, and their changes fail.
var unreachable = map[string]any{
	"keycloak":   map[string]any{"client_id": "purlin", "client_secret": "secret", "url": "http://127.0.0.1:1", "initial_login": false},
	"kubectl":    map[string]any{"host": "http://127.0.0.1:1", "load_config_file": false},
	"kubernetes": map[string]any{"host": "http://127.0.0.1:1"},
	"rabbitmq":   map[string]any{"endpoint": "http://127.0.0.1:1", "username": "guest", "password": "guest"},
}

// upgrade has an object that an older version of the provider created.
func upgrade(random *source) *History {
	w := &writer{source: random}
	object := func(argument string) []*Object {
		return []*Object{{Name: "o1", Type: "corner_versioned", Config: map[string]any{argument: text(w.source)}}}
	}
	folder := inFolder("corner")
	history := &History{Providers: []string{"corner"}, Steps: []*Step{
		{Command: "apply", Configurations: folder, Environment: map[string]string{"CORNER_SCHEMA": "0"}, Objects: object("label")},
		{Command: pick(random, []string{"apply", "refresh", "destroy"}), Configurations: folder, Objects: object("title")},
	}}
	if history.Steps[1].Command != "destroy" {
		history.Steps = append(history.Steps, &Step{Command: "apply", Configurations: folder, Objects: object("title")})
	}
	return history
}

// move has an object that becomes one of another type.
func move(random *source) *History {
	folder := inFolder("corner")
	w := &writer{source: random, kinds: []kind{thing}, step: &Step{Command: "apply", Configurations: folder}}
	for range 1 + random.Intn(2) {
		w.add()
	}
	first := w.step
	next := first.clone()
	moved := next.Objects[0]
	moved.MovedFrom, moved.MovedType = moved.Name, moved.Type
	moved.Name, moved.Type, moved.Config = "moved", "corner_versioned", map[string]any{"title": text(random)}
	moved.IgnoreChanges, moved.DependsOn = nil, nil
	// Nothing refers to the previous name.
	next.Objects = next.Objects[:1]
	last := next.clone()
	last.Objects[0].Config = map[string]any{"title": text(random)}
	return &History{Providers: []string{"corner"}, Steps: []*Step{first, next, last}}
}

func mixed() []kind {
	all := []kind{thing}
	all = append(all, randoms[:4]...)
	return append(append(all, files...), times[:2]...)
}

var randoms = []kind{
	{provider: "random", name: "random_pet", outputs: []string{"id"}, arguments: map[string]argument{
		"length": {value: between(1, 3)}, "prefix": {value: word, refers: true}, "separator": {value: among("-", "_")},
		"keepers": {value: keepers, unique: true},
	}},
	{provider: "random", name: "random_id", outputs: []string{"hex", "id"}, arguments: map[string]argument{
		"byte_length": {value: between(2, 8), required: true}, "prefix": {value: word, refers: true},
		"keepers": {value: keepers, unique: true},
	}},
	{provider: "random", name: "random_integer", outputs: []string{"id"}, arguments: map[string]argument{
		"min": {value: between(1, 5), required: true}, "max": {value: between(6, 20), required: true}, "seed": {value: word, refers: true},
		"keepers": {value: keepers, unique: true},
	}, existing: func(_ *source, config map[string]any) (string, map[string]string) { return "7,1,20", nil }},
	{provider: "random", name: "random_shuffle", arguments: map[string]argument{
		"input": {value: list(word, 4), required: true}, "result_count": {value: between(1, 3)}, "seed": {value: word, refers: true},
		"keepers": {value: keepers, unique: true},
	}},
	{provider: "random", name: "random_string", outputs: []string{"result"}, arguments: map[string]argument{
		"length": {value: between(8, 12), required: true}, "special": {value: boolean}, "upper": {value: boolean},
		"min_numeric": {value: between(0, 3)}, "override_special": {value: among("!", "-_")}, "keepers": {value: keepers, unique: true},
	}},
	{provider: "random", name: "random_password", outputs: []string{"result"}, arguments: map[string]argument{
		"length": {value: between(8, 12), required: true}, "special": {value: boolean}, "min_lower": {value: between(0, 3)},
		"keepers": {value: keepers, unique: true},
	}, existing: func(*source, map[string]any) (string, map[string]string) { return "swordfish1", nil }},
	{provider: "random", name: "random_uuid", outputs: []string{"result"}, arguments: map[string]argument{
		"keepers": {value: keepers, unique: true},
	}, existing: func(*source, map[string]any) (string, map[string]string) {
		return "6b0f8e7a-6c0e-4d2b-9e57-0d1f2a3b4c5d", nil
	}},
	{provider: "random", name: "random_uuid4", outputs: []string{"id"}, arguments: map[string]argument{"keepers": {value: keepers, unique: true}}},
	{provider: "random", name: "random_bytes", outputs: []string{"base64"}, arguments: map[string]argument{
		"length": {value: between(1, 9), required: true}, "keepers": {value: keepers, unique: true},
	}},
}

var moments = among("2024-01-31T12:00:00Z", "2030-06-01T00:00:00Z")

var times = []kind{
	{provider: "time", name: "time_static", outputs: []string{"rfc3339", "id"}, arguments: map[string]argument{
		"rfc3339": {value: moments}, "triggers": {value: keepers, unique: true},
	}, existing: func(*source, map[string]any) (string, map[string]string) { return "2020-02-12T06:36:13Z", nil }},
	{provider: "time", name: "time_offset", outputs: []string{"rfc3339"}, arguments: map[string]argument{
		"base_rfc3339": {value: moments}, "offset_days": {value: between(-3, 3), required: true}, "offset_hours": {value: between(1, 9)},
		"triggers": {value: keepers, unique: true},
	}},
	{provider: "time", name: "time_rotating", outputs: []string{"rfc3339"}, arguments: map[string]argument{
		"rfc3339": {value: moments}, "rotation_years": {value: between(90, 99), required: true}, "triggers": {value: keepers, unique: true},
	}},
	{provider: "time", name: "time_sleep", outputs: []string{"id"}, arguments: map[string]argument{
		"create_duration": {value: among("1ms", "2ms"), required: true}, "destroy_duration": {value: among("1ms", "2ms")},
		"triggers": {value: keepers, unique: true},
	}},
}

var subject = list(object(map[string]func(*source) any{"common_name!": word, "organization": word, "street_address": list(word, 2)}), 1)

var uses = some(among("digital_signature", "server_auth", "client_auth", "key_encipherment"), 3)

var keys = []kind{
	{provider: "tls", name: "tls_private_key", outputs: []string{"private_key_pem"}, once: true, arguments: map[string]argument{
		"algorithm": {value: among("ED25519", "ECDSA"), required: true}, "ecdsa_curve": {value: among("P224", "P256")},
	}},
	{provider: "tls", name: "tls_self_signed_cert", once: true, arguments: map[string]argument{
		"private_key_pem": {refers: true, required: true}, "validity_period_hours": {value: between(100, 999), required: true},
		"early_renewal_hours": {value: between(0, 3)}, "allowed_uses": {value: uses, required: true}, "subject": {value: subject, required: true},
		"dns_names": {value: list(word, 2)}, "is_ca_certificate": {value: boolean}, "set_subject_key_id": {value: boolean},
	}},
	{provider: "tls", name: "tls_cert_request", once: true, arguments: map[string]argument{
		"private_key_pem": {refers: true, required: true}, "subject": {value: subject, required: true},
		"ip_addresses": {value: list(among("127.0.0.1", "10.0.0.1"), 2)}, "uris": {value: list(among("spiffe://a/b"), 1)},
	}},
	{provider: "tls", name: "tls_public_key", data: true, arguments: map[string]argument{"private_key_pem": {refers: true, required: true}}},
}

func filename(attributes map[string]any) string {
	path, _ := attributes["filename"].(string)
	return path
}

var files = []kind{
	{provider: "local", name: "local_file", outputs: []string{"content_md5", "filename"}, file: filename, arguments: map[string]argument{
		"filename": {value: among("world/%s"), unique: true}, "content": {value: text, required: true, refers: true}, "file_permission": {value: among("0640", "0600")},
	}},
	{provider: "local", name: "local_sensitive_file", outputs: []string{"id"}, file: filename, arguments: map[string]argument{
		"filename": {value: among("world/%s"), unique: true}, "content": {value: word, required: true, refers: true},
		"directory_permission": {value: among("0700", "0750")},
	}},
	{provider: "local", name: "local_file", data: true, outputs: []string{"content"}, arguments: map[string]argument{
		"filename": {value: among("main.tf.json"), required: true},
	}},
}

func idFile(attributes map[string]any) string {
	id, _ := attributes["id"].(string)
	if id == "" {
		return ""
	}
	return filepath.Join("world", id)
}

func byID(random *source, config map[string]any) (string, map[string]string) {
	id := fmt.Sprintf("found%d", random.Intn(1<<20))
	return id, map[string]string{"world/" + id: "found"}
}

var inner = object(map[string]func(*source) any{"key!": word, "value": reftext})

var thing = kind{
	provider: "corner", name: "corner_thing", outputs: []string{"id", "name", "token", "text"}, file: idFile, existing: byID,
	arguments: map[string]argument{
		"name": {value: among("%s", "name-%s"), unique: true}, "text": {value: text, refers: true}, "amount": {value: numbers}, "count_of": {value: between(1, 5)},
		"tags": {value: dictionary(reftext)}, "names": {value: set(reftext, 4)}, "any": {value: anything}, "password": {value: word},
		"secret_wo": {value: word, refers: true}, "secret_wo_version": {value: between(1, 3)}, "one": {value: inner}, "many": {value: list(inner, 3)},
		"unordered": {value: set(inner, 3)}, "by_key": {value: dictionary(inner)}, "rule": {value: list(inner, 3)},
	},
}

var corners = []kind{
	thing, thing, thing,
	{provider: "corner", name: "corner_identified", identified: true, outputs: []string{"id", "name"}, file: idFile, arguments: map[string]argument{
		"region": {value: among("home", "away"), required: true, refers: true}, "name": {value: among("%s", "name-%s"), unique: true},
	}, existing: func(_ *source, config map[string]any) (string, map[string]string) {
		name := config["name"].(string)
		return name, map[string]string{"world/home-" + name: "found"}
	}},
	{provider: "corner", name: "corner_versioned", outputs: []string{"id"}, file: idFile, once: true, arguments: map[string]argument{
		"title": {value: text, refers: true},
	}},
	{provider: "corner", name: "corner_counted", once: true, arguments: map[string]argument{"text": {value: text, refers: true}}},
	{provider: "corner", name: "corner_lookup", data: true, outputs: []string{"text"}, arguments: map[string]argument{"id": {refers: true, to: "id", required: true}}},
}

var legacyBlock = object(map[string]func(*source) any{"key!": word, "value": reftext, "port": between(80, 90)})

var wholeBlock = object(map[string]func(*source) any{"key!": word, "value!": word, "port!": between(80, 90)})

var legacies = []kind{
	{provider: "legacy", name: "legacy_thing", outputs: []string{"id", "computed", "name"}, file: idFile, existing: byID, arguments: map[string]argument{
		"name": {value: among("%s", "name-%s"), unique: true}, "text": {value: text, refers: true}, "enabled": {value: boolean},
		"size": {value: numbers}, "password": {value: text}, "tags": {value: dictionary(reftext)}, "casing": {value: among("Upper", "upper", "other", "")},
		"document": {value: among(`{"a": 1}`, `{"a":1}`, `{"b":[]}`)}, "computed": {value: word, refers: true}, "one": {value: list(legacyBlock, 1)},
		"many": {value: list(legacyBlock, 3)}, "unordered": {value: set(legacyBlock, 3)}, "as_attribute": {value: list(wholeBlock, 2)},
		"timeouts": {value: object(map[string]func(*source) any{"create": among("2m", "3m"), "delete": among("2m")})},
	}},
}

var failures = among("error", "partial", "warning", "invalid")

var troubles = []kind{
	{provider: "corner", name: "corner_trouble", outputs: []string{"id"}, file: idFile, arguments: map[string]argument{
		"text": {value: among("t-%s"), unique: true}, "on_create": {value: failures}, "on_update": {value: failures},
		"on_read": {value: among("warning")}, "on_delete": {value: among("warning", "partial", "error")}, "on_plan": {value: among("warning")},
	}},
	thing,
}

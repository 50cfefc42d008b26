package main

// The kinds of providers with a server.

var pages = []kind{
	{provider: "http", name: "http", data: true, outputs: []string{"body"}, arguments: map[string]argument{
		"url":             {value: among("http://"+pageAddress+"/a", "http://"+pageAddress+"/b", "http://"+pageAddress+"/c", "http://"+pageAddress+"/d", "http://"+pageAddress+"/missing"), required: true},
		"request_headers": {value: object(map[string]func(*source) any{"Accept!": among("text/plain", "text/*")})},
	}},
	{provider: "random", name: "random_pet", outputs: []string{"id"}, arguments: map[string]argument{
		"prefix": {value: word, refers: true}, "keepers": {value: keepers, unique: true},
	}},
}

var broker = map[string]any{"kafka": map[string]any{
	"bootstrap_servers": []any{"127.0.0.1:18481"}, "tls_enabled": false, "timeout": 20,
}}

var topics = []kind{
	{provider: "kafka", name: "kafka_topic", outputs: []string{"name"}, arguments: map[string]argument{
		"name":       {value: among("%s"), unique: true},
		"partitions": {value: between(1, 4), required: true}, "replication_factor": {value: among(1), required: true},
		"config": {value: object(map[string]func(*source) any{"retention.ms": among("1000", "2000"), "cleanup.policy": among("compact", "delete")})},
	}},
	{provider: "kafka", name: "kafka_acl", arguments: map[string]argument{
		"resource_name": {value: word, required: true, refers: true}, "resource_type": {value: among("Topic"), required: true},
		"acl_principal": {value: among("User:%s"), unique: true}, "acl_host": {value: among("*", "127.0.0.1"), required: true},
		"acl_operation": {value: among("Read", "Write"), required: true}, "acl_permission_type": {value: among("Allow", "Deny"), required: true},
	}},
	{provider: "kafka", name: "kafka_user_scram_credential", arguments: map[string]argument{
		"username": {value: among("user-%s"), unique: true}, "scram_mechanism": {value: among("SCRAM-SHA-256", "SCRAM-SHA-512"), required: true},
		"scram_iterations": {value: among(4096, 8192)}, "password": {value: among("secret1", "secret2"), required: true},
	}},
}

// metadata is the block that every object of the provider has; its name is that of the object.
func metadata(s *source) any {
	block := map[string]any{}
	if s.one(2) {
		block["labels"] = dictionaryOf(s, among("a", "b", refer))
	}
	if s.one(3) {
		block["annotations"] = dictionaryOf(s, text)
	}
	return []any{block}
}

// dictionaryOf has keys that Kubernetes accepts.
func dictionaryOf(s *source, of func(*source) any) any {
	all := map[string]any{}
	for range 1 + s.Intn(3) {
		all[pick(s, []string{"k1", "k2", "k3"})] = of(s)
	}
	return all
}

func dictionaryFor(of func(*source) any) func(*source) any {
	return func(s *source) any { return dictionaryOf(s, of) }
}

// always is a list with one block.
func always(fields map[string]func(*source) any) func(*source) any {
	return func(s *source) any { return []any{object(fields)(s)} }
}

func inCluster(name string, arguments map[string]argument) kind {
	arguments["metadata"] = argument{value: metadata, unique: true}
	return kind{provider: "kubernetes", name: "kubernetes_" + name, outputs: []string{"metadata[0].name", "metadata[0].uid"}, arguments: arguments}
}

var fields = func(all ...any) map[string]func(*source) any {
	made := map[string]func(*source) any{}
	for i := 0; i < len(all); i += 2 {
		made[all[i].(string)] = all[i+1].(func(*source) any)
	}
	return made
}

var rules = some(object(fields("api_groups!", among[any]([]any{""}, []any{"apps"}), "resources!", some(among("pods", "services"), 2), "verbs!", some(among("get", "list", "watch"), 3))), 2)

var ports = some(object(fields("name!", among("http", "web"), "port!", between(80, 82), "target_port", among("8080", "8081"))), 1)

var container = always(fields("name!", among("app"), "image!", among("nginx:1", "nginx:2"), "args", list(word, 2),
	"env", list(object(fields("name!", among("A", "B"), "value", among("x", refer))), 1)))

var workload = always(fields("replicas", between(0, 2), "selector!", always(fields("match_labels!", among[any](map[string]any{"app": "x"}))),
	"template!", always(fields("metadata!", among[any]([]any{map[string]any{"labels": map[string]any{"app": "x"}}}), "spec!", always(fields("container!", container))))))

// A persistent volume claim needs the controller manager to be deleted.
var inNamespaces = []kind{
	inCluster("config_map", map[string]argument{"data": {value: dictionaryFor(reftext)}, "binary_data": {value: dictionaryFor(among("YQ=="))}}),
	inCluster("secret", map[string]argument{"data": {value: dictionaryFor(reftext)}, "type": {value: among("Opaque", "example.com/other")}}),
	inCluster("role", map[string]argument{"rule": {value: rules, required: true}}),
	inCluster("cluster_role", map[string]argument{"rule": {value: rules, required: true}}),
	inCluster("role_binding", map[string]argument{
		"role_ref": {value: always(fields("api_group!", among("rbac.authorization.k8s.io"), "kind!", among("Role", "ClusterRole"), "name!", among("a", refer))), required: true},
		"subject":  {value: always(fields("kind!", among("ServiceAccount"), "name!", among("a", "b"), "namespace!", among("default"))), required: true},
	}),
	inCluster("service", map[string]argument{
		"spec": {value: always(fields("port!", ports, "selector", dictionaryFor(among("a", refer)), "type", among("ClusterIP", "NodePort"), "session_affinity", among("None", "ClientIP"))), required: true},
	}),
	inCluster("deployment", map[string]argument{"spec": {value: workload, required: true}, "wait_for_rollout": {value: among(false), required: true}}),
	inCluster("priority_class", map[string]argument{"value": {value: between(1, 9), required: true}, "description": {value: text}}),
	inCluster("storage_class", map[string]argument{"storage_provisioner": {value: among("example.com/a", "example.com/b"), required: true}, "reclaim_policy": {value: among("Retain", "Delete")}}),
	inCluster("limit_range", map[string]argument{"spec": {value: always(fields("limit!", some(object(fields("type!", among("Pod", "Container"), "max!", dictionaryLimits)), 1))), required: true}}),
	{provider: "kubernetes", name: "kubernetes_service", data: true, outputs: []string{"metadata[0].uid"}, arguments: map[string]argument{
		"metadata": {value: among[any]([]any{map[string]any{"name": "kubernetes"}}), required: true},
	}},
}

func dictionaryLimits(s *source) any {
	return map[string]any{"cpu": pick(s, []string{"200m", "1"}), "memory": pick(s, []string{"1024M", "1Gi"})}
}

var documents = []kind{
	{provider: "kubectl", name: "kubectl_manifest", outputs: []string{"name", "uid"}, arguments: map[string]argument{
		"yaml_body": {value: among(
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s", "namespace": "default"}, "data": {"a": "b"}}`,
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s", "namespace": "default"}, "data": {"a": "c"}}`,
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "%s", "namespace": "default"}, "stringData": {"a": "c"}}`,
		), unique: true},
		"force_new": {value: boolean}, "server_side_apply": {value: boolean}, "sensitive_fields": {value: list(among("data.a", "stringData"), 1)},
	}},
	{provider: "kubectl", name: "kubectl_file_documents", data: true, outputs: []string{"id"}, arguments: map[string]argument{
		"content": {value: among("a: 1\n---\nb: 2\n", "c: 3\n"), required: true},
	}},
	{provider: "kubectl", name: "kubectl_path_documents", data: true, outputs: []string{"id"}, arguments: map[string]argument{
		"pattern": {value: among("main.tf.json"), required: true}, "disable_template": {value: among(true), required: true},
	}},
}

package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Expression is an expression over the variables of the first line. The result is missing if there is an error.
type Expression struct {
	Source string `json:"e"`
	Result *Value `json:"r,omitempty"`
}

func writeExpressions(j *judge, lines *json.Encoder) {
	variables := map[string]*Value{}
	for name, value := range places {
		variables[name] = encode(value)
	}
	write(lines, map[string]any{"variables": variables})
	for _, source := range strings.Split(strings.TrimSpace(expressions), "\n") {
		j.writeExpression(lines, strings.TrimSpace(source))
	}
	for _, source := range strings.Split(strings.TrimSpace(templates), "\n") {
		j.writeExpression(lines, "<<-EOT\n"+strings.ReplaceAll(strings.TrimSpace(source), "⏎", "\n")+"\nEOT\n")
	}
	seen := map[string]bool{}
	for len(seen) < 12000 {
		source := j.expression(3)
		if len(source) < 400 && !seen[source] {
			seen[source] = true
			j.writeExpression(lines, source)
		}
	}
}

func (j *judge) writeExpression(lines *json.Encoder, source string) {
	// A panic outside of a function is a defect of upstream's, which nothing should reproduce.
	defer func() { _ = recover() }()
	vector := Expression{Source: source}
	if result := j.evaluate(source, places); result != nil {
		vector.Result = encode(*result)
	}
	write(lines, vector)
}

func (j *judge) one(options ...string) string {
	return options[j.random.Intn(len(options))]
}

var names = func() []string {
	names := []string{}
	for name := range places {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}()

// expression is random source of a wanted kind; one in fifteen has another kind.
func (j *judge) expression(depth int) string {
	return j.of(j.one("string", "number", "bool", "list", "list", "map", "map", "any"), depth)
}

func (j *judge) of(kind string, depth int) string {
	if j.random.Intn(15) == 0 {
		kind = j.one("string", "number", "bool", "list", "map", "any")
	}
	if depth == 0 {
		return j.leaf(kind)
	}
	of := func(kind string) string { return j.of(kind, depth-1) }
	any := func() string { return of(j.one("string", "number", "bool", "list", "map")) }
	switch j.random.Intn(8) {
	case 0:
		return fmt.Sprintf("(%s ? %s : %s)", j.one("t", "f", "unknown_bool", "secret_bool", of("bool")), of(kind), of(kind))
	case 1:
		return fmt.Sprintf("try(%s, %s)", of(kind), of(kind))
	case 2:
		return fmt.Sprintf("[%s, %s][%s]", of(kind), of(kind), j.one("0", "1", "n % 2", "unknown_num", "secret_number - 2"))
	case 3:
		return fmt.Sprintf("{a = %s, b = %s}%s", of(kind), any(), j.one(".a", "[\"a\"]", "[unknown_str]"))
	}
	switch kind {
	case "string":
		return j.one(
			fmt.Sprintf("\"%s${%s}%s\"", j.one("", "a-", "é"), of(j.one("string", "number", "bool")), j.one("", "-z", "${n}")),
			fmt.Sprintf("%s(%s)", j.one("upper", "lower", "title", "trimspace", "strrev", "md5", "base64encode", "sensitive", "nonsensitive", "tostring", "urlencode"), of("string")),
			fmt.Sprintf("join(\"-\", [%s, %s])", of("string"), of("string")),
			fmt.Sprintf("jsonencode(%s)", any()),
			fmt.Sprintf("format(\"%%s-%%v\", %s, %s)", of("string"), any()),
			fmt.Sprintf("replace(%s, \"a\", %s)", of("string"), of("string")),
			fmt.Sprintf("substr(%s, 0, 2)", of("string")),
			fmt.Sprintf("coalesce(%s, %s)", of("string"), of("string")),
		)
	case "number":
		return j.one(
			fmt.Sprintf("(%s %s %s)", of("number"), j.one("+", "-", "*", "/", "%"), of("number")),
			fmt.Sprintf("-(%s)", of("number")),
			fmt.Sprintf("length(%s)", of(j.one("list", "map", "string"))),
			fmt.Sprintf("%s(%s, %s)", j.one("max", "min"), of("number"), of("number")),
			fmt.Sprintf("%s(%s)", j.one("abs", "ceil", "floor", "tonumber", "signum"), of("number")),
			fmt.Sprintf("sum([%s, %s])", of("number"), of("number")),
		)
	case "bool":
		return j.one(
			fmt.Sprintf("(%s %s %s)", of("number"), j.one("<", "<=", ">", ">="), of("number")),
			fmt.Sprintf("(%s %s %s)", of("bool"), j.one("&&", "||"), of("bool")),
			fmt.Sprintf("(%s %s %s)", any(), j.one("==", "!="), any()),
			fmt.Sprintf("!%s", j.leaf("bool")),
			fmt.Sprintf("can(%s)", any()),
			fmt.Sprintf("contains(%s, %s)", of("list"), of("string")),
			fmt.Sprintf("alltrue([%s, %s])", of("bool"), of("bool")),
			fmt.Sprintf("startswith(%s, %s)", of("string"), j.one("\"a\"", "\"i-\"", of("string"))),
		)
	case "list":
		return j.one(
			fmt.Sprintf("[%s, %s]", any(), any()),
			fmt.Sprintf("[for %s in %s : %s%s]", j.one("v", "k, v"), of(j.one("list", "map")), j.one("v", "[v]", "\"${v}-x\"", "try(v.name, v)", of("string"), "{x = v}"), j.one("", "", " if v != null", " if v != \"a\"", " if unknown_bool", " if secret_bool")),
			fmt.Sprintf("(%s)%s", of("list"), j.one("[*]", ".*")),
			fmt.Sprintf("objects%s", j.one("[*].name", ".*.name", "[*].tags[0]", "[*].tags", ".*.tags[*]", "[*].tags[*]")),
			fmt.Sprintf("%s(%s, %s)", j.one("concat", "setunion", "setproduct", "coalescelist", "setsubtract"), of("list"), of("list")),
			fmt.Sprintf("%s(%s)", j.one("tolist", "toset", "flatten", "reverse", "distinct", "compact", "sort", "sensitive"), of("list")),
			fmt.Sprintf("%s(%s)", j.one("keys", "values"), of("map")),
			fmt.Sprintf("concat([%s, %s]...)", of("list"), of("list")),
			fmt.Sprintf("slice(%s, 0, 1)", of("list")),
		)
	case "map":
		return j.one(
			fmt.Sprintf("{a = %s, %s = %s}", any(), j.one("b", "(s)", "\"x${n}\"", "(secret)", "(unknown_str)"), any()),
			fmt.Sprintf("{for k, v in %s : %s => %s%s%s}", of(j.one("list", "map", "map")), j.one("k", "\"k-${k}\"", "jsonencode(v)"), j.one("v", "k", of("string")), j.one("", "", "..."), j.one("", "", " if v != \"a\"", " if k != \"a\"")),
			fmt.Sprintf("merge(%s, %s)", of("map"), of("map")),
			fmt.Sprintf("%s(%s)", j.one("tomap", "sensitive", "nonsensitive"), of("map")),
			fmt.Sprintf("zipmap(keys(%s), values(%s))", "map", of("map")),
		)
	default:
		return any()
	}
}

func (j *judge) leaf(kind string) string {
	switch kind {
	case "string":
		return j.one("s", "secret", "token", "id", "unknown_str", "null_str", "\"a\"", "\"\"", "\"5\"", "list[0]", "map.a", "object.b[1]", "secrets[1]", "partly[1]", "objects[0].name")
	case "number":
		return j.one("n", "1", "0", "2.5", "0.1", "1e3", "\"5\"", "count", "unknown_num", "secret_number", "numbers[1]", "object.a", "length(list)")
	case "bool":
		return j.one("t", "f", "true", "false", "\"true\"", "unknown_bool", "secret_bool", "object.b[0]")
	case "list":
		return j.one("list", "empty_list", "numbers", "set", "empty_set", "partly", "partly_set", "secrets", "secret_list", "unknown_list", "unknown_set", "some", "[]", "[1, 2]", "[\"a\", 1]", "[null]", "objects", "null_list")
	case "map":
		return j.one("map", "empty_map", "partly_map", "secret_map", "unknown_map", "object", "{}", "{a = 1}", "{a = null}", "{a = {b = 1}}")
	}
	return names[j.random.Intn(len(names))]
}

const templates = `
Hello, ${s}!
%{ if t }yes%{ else }no%{ endif }
%{ if unknown_bool }yes%{ else }no%{ endif }
%{ if t }${s}%{ endif }!
%{ for v in list }${v},%{ endfor }
%{ for v in list ~}⏎${v}⏎%{ endfor ~}⏎end
%{ for k, v in map }${k}=${v};%{ endfor }
%{ for v in secrets }${v}%{ endfor }
%{ for v in unknown_list }${v}%{ endfor }
%{ for v in partly }${v}%{ endfor }
%{ for v in [null] }${v}%{ endfor }
  ${s}⏎    indented⏎  back
$${literal} %%{literal}
${null_str}
${list}
${secret}-${unknown_str}
a ${id} b
abc-${unknown_str}
%{ if secret_bool }a%{ else }b%{ endif }
${~ s ~} x
%{ for v in list }%{ if v != "a" }${v}%{ endif }%{ endfor }
${1 + 1}${t}${1.50}
`

const expressions = `
0.1 + 0.2
0.1 + 0.2 == 0.3
1 / 3
2 / 3 * 3
length(list) / 7
length(list) / length("1234567")
1 / 0
-1 / 0
0 / 0
5 % 3
-5 % 3
5 % -3
5.5 % 2
5 % 0
1e308 * 1e308
1e5000
123456789012345678901234567890 + 1
0.1 * 3
100000000000000000000000 / 3
1.10
007
1 == "1"
"a" == "a"
1 == 1.0
null == null
null == unknown_str
null == id
list == list
[1, 2] == [1, 2]
[1, "2"] == [1, 2]
list == ["c", "a", "b"]
{a = 1} == {a = 1}
{a = 1} == {a = "1"}
map == {a = "1", b = "2"}
set == toset(["y", "x"])
partly_set == set
unknown_str == "x"
id == "x"
id == "i-1"
id == 5
unknown == 1
[unknown_str] == ["a"]
[unknown_str, 1] == ["a", 2]
[unknown] == [1, 2]
secret == "hush"
secrets == list
secret_map == null
secrets == null
secret != token
null_str == ""
unknown_bool && false
unknown_bool || true
unknown_bool && true
unknown_bool && unknown_bool
false && nope
nope && false
true || nope
nope || true
true && nope
secret_bool && false
"true" && true
"yes" && true
!unknown_bool
!secret_bool
!"true"
!null
-count
-"5"
-null
count > 0
count > 5
count > 6
count >= 1
count < 1
count == 7
count + 1
count * 2
"5" + 1
"x" + 1
null + 1
unknown + 1
unknown_num + unknown_num
1 < "2"
1 < null
secret_number > 1
t ? 1 : 2
t ? 1 : "a"
t ? [1] : ["a"]
t ? [] : ["a"]
f ? [] : ["a"]
t ? {a = 1} : {}
t ? {a = 1} : {b = "x"}
t ? {a = 1} : {a = "x"}
t ? {a = 1} : [1]
t ? null : "a"
f ? null : "a"
t ? null : null
f ? null_str : 5
t ? list : ["a", 1]
t ? [1, 2] : [1]
t ? set : ["a"]
t ? map : {x = 1}
t ? map : {x = [1]}
t ? unknown : 1
t ? 1 : unknown
t ? unknown_list : []
unknown_bool ? 1 : 2
unknown_bool ? count : 10
unknown_bool ? "a" : "b"
unknown_bool ? id : "i-5"
unknown_bool ? list : []
unknown_bool ? list : ["x"]
unknown_bool ? null : null
unknown_bool ? null : "a"
unknown_bool ? some : list
unknown_bool ? secret : "x"
unknown_bool ? {a = 1} : {a = 2}
secret_bool ? "a" : "b"
t ? secret : "b"
f ? secret : "b"
t ? secrets : list
null ? 1 : 2
"true" ? 1 : 2
"x" ? 1 : 2
1 ? 1 : 2
[] ? 1 : 2
t ? 1 : nope
f ? 1 : nope
t ? tonumber("x") : 1
t ? 1 : tonumber("x")
t ? toset([]) : toset(["a"])
t ? tolist([]) : tolist([1])
t ? {} : map
t ? [] : list
t ? [] : {}
t ? {a = null} : {a = "x"}
t ? {a = []} : {a = ["x"]}
t ? [{a = 1}] : [{a = 1, b = 2}]
t ? [{a = 1}, {b = 2}] : [{a = 1}]
t ? {a = {x = 1}} : {a = {y = 2}}
t ? [1, "a"] : [true, null]
t ? [[1], []] : [["a"], ["b"]]
t ? (secret_bool ? 1 : 2) : 3
list[0]
list[3]
list[-1]
list[0.5]
list["0"]
list["x"]
list[null]
list[unknown_num]
list[secret_number]
list.0
list.1
map["a"]
map.a
map.z
map["z"]
map[unknown_str]
map[secret]
object.a
object.z
object["a"]
object.b[1]
object.b[2]
object["b"][0]
object.n.x
object[0]
object[unknown_str]
set[0]
s.x
s[0]
n.x
unknown.a.b[0]
unknown_list[0]
unknown_map.a
unknown_map["a"]
some[5]
null_list[0]
null.a
secret_list[0]
secrets[1]
secret_map.a
secret_map["b"]
[1, 2][0]
[1, 2][unknown_num]
[1, unknown_str][1]
{a = 1}.a
{a = 1}["b"]
nope
nope.a
objects[*].name
objects[*].tags
objects[*].tags[0]
objects[*].tags[*]
objects.*.name
objects.*.tags.0
objects[0][*].name
objects[*].nope
object[*].a
null[*]
null_str[*]
null_list[*]
null_list[*].x
s[*]
secret[*]
secrets[*]
secret_list[*]
unknown[*]
unknown_str[*]
id[*]
unknown_list[*]
some[*]
partly[*]
empty_list[*]
empty_list[*].x
set[*]
map[*]
[][*].a
[{a = 1}, {a = "x"}][*].a
[{a = 1}, {b = 1}][*].a
[[1, 2], [3]][*][0]
list[*][0]
list.*.x
[for v in list : v]
[for v in list : upper(v) if v != "a"]
[for i, v in list : "${i}${v}"]
[for v in set : v]
[for k, v in set : k == v]
[for k, v in map : "${k}=${v}"]
[for v in object : v]
[for v in [] : v]
[for v in null : v]
[for v in s : v]
[for v in 1 : v]
[for v in unknown : v]
[for v in unknown_list : v]
[for v in partly : v]
[for v in partly : v if v != "a"]
[for v in secrets : v]
[for v in secret_list : v]
[for v in secrets : v if v != "x"]
[for v in list : v if null]
[for v in list : v if "x"]
[for v in list : v if unknown_bool]
[for v in list : v if secret_bool]
[for v in [] : v if 5]
[for v in [] : v if "true"]
[for v in list : nope]
[for v in list : v.x]
[for a in [1, 2] : [for b in [3, 4] : a * b]]
{for v in list : v => upper(v)}
{for k, v in map : v => k}
{for v in ["a", "a"] : v => 1}
{for v in ["a", "a", "b"] : v => 1...}
{for v in [1, true] : v => v}
{for v in [null] : v => 1}
{for v in [unknown_str] : v => 1}
{for v in [secret] : v => 1}
{for v in [[]] : v => 1}
{for v in [] : v => 1}
{for k, v in secret_map : k => v}
{for k, v in unknown_map : k => v}
{for k, v in map : k => v if k != "a"}
{for o in objects : o.name => o.tags}
{for i, v in list : i => v}
{a = 1, "b" = 2, (s) = 3}
{a = 1, a = 2}
{(null) = 1}
{(unknown_str) = 1}
{(secret) = 1}
{(list) = 1}
{(1) = 2, (true) = 3}
{list[0] = 1}
{a.b = 1}
{null = 1, true = 2}
{"${s}-x" = 1}
{1 = 2}
{}
[]
[1, "a", true, null, [], {}]
"${s}"
"${list}"
"x${list}"
"${null}"
"x${null}"
"${unknown}"
"x${unknown}"
"x-${unknown_str}-y"
"x${secret}"
"${id}x"
"${1}"
"${true}x"
"a${"b${"c"}"}"
"é${unknown_str}"
"$${x} %%{x}"
"\u00e9\n\t\"\\"
"e\u0301"
"${[for v in list : v]}"
upper("a", "b")
upper()
upper(null)
upper([])
upper(nope)
nope("a")
max([1, 2, 3]...)
max(1, [2, 3]...)
max(unknown_list...)
max(unknown...)
max(null...)
max("a"...)
max(set...)
join("-", secrets...)
concat([list, ["z"]]...)
concat([partly, unknown_list]...)
core::upper("a")
core::nope("a")
try(nope, 1)
try(object.z, "d")
try(list[5], list[0])
try(tonumber("x"))
try()
try(unknown, 1)
try(unknown_str, "a")
try(partly, 1)
try(secret, 1)
try(null, 1)
try(1 / 0, 2)
can(nope)
can(list[5])
can(list[0])
can(unknown)
can(unknown.a)
can(1, 2)
can(tobool("x"))
sensitive(list)[0]
sensitive({a = 1}).a
templatestring("a $${x} b", {x = s})
templatestring("a $${y} b", {x = s})
templatestring("%%{ for v in l }$${v},%%{ endfor }", {l = list})
templatestring("$${x}", {x = secret})
templatestring("$${x}", {x = unknown_str})
templatestring("$${x}", unknown_map)
templatestring("$${x", {x = 1})
templatestring("$${x}", {x = list})
templatestring("$${x}", {"a b" = 1})
templatestring("x", [])
templatestring(secret, {})
templatestring(unknown_str, {})
templatefile("template.tftpl", {name = s, items = list})
templatefile("template.tftpl", {name = s})
templatefile("template.tftpl", {name = secret, items = []})
templatefile("nope.tftpl", {})
templatefile("loop.tftpl", {})
(1 + 2) * 3
1 + 2 * 3
10 - 2 - 3
2 * 3 % 4
!t == f
-n + 1
1 < 2 == true
t && f || t
t ? f ? 1 : 2 : 3
length("x") + length([1])
tolist([1, 2])[*]
values({a = 1, b = "x"})[0]
keys(unknown_map)[0]
merge({a = 1}, null)
merge(object, {z = 1}).z
sha1(base64gzip(join("", [for repeated in range(4) : join("", [for i in range(511) : sha256(i)])])))
sha1(base64gzip(join("-", [for repeated in range(4) : join("", [for i in range(512) : sha256(i)])])))
sha1(base64gzip(join("", [for i in range(1000) : join(".", [for j in range(20) : "${i * j % 1000}:${i}"])])))
`

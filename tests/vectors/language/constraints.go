package main

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Constraint is a value that a type is asked of. The result is missing if there is an error.
type Constraint struct {
	Type   string `json:"c"`
	Source string `json:"e"`
	// The value of the variable `operand`, if the source is that.
	Operand *Value `json:"a,omitempty"`
	Result  *Value `json:"r,omitempty"`
}

const constraints = 3000


func writeConstraints(j *judge, lines *json.Encoder) {
	variables := map[string]*Value{}
	for name, value := range places {
		variables[name] = encode(value)
	}
	write(lines, map[string]any{"variables": variables})
	for _, ty := range strings.Split(strings.TrimSpace(types), "\n") {
		for _, value := range strings.Split(strings.TrimSpace(values), "\n") {
			j.writeConstraint(lines, ty, value)
		}
	}
	for range constraints {
		j.writeRandomConstraint(lines)
	}
}

func (j *judge) writeRandomConstraint(lines *json.Encoder) {
	defer func() { _ = recover() }()
	wanted, given := j.constraint(3)
	operand := j.some(j.similar(given), false)
	vector := Constraint{Type: wanted, Source: "operand", Operand: encode(operand), Result: constrained(wanted, operand)}
	first, err := json.Marshal(vector.Result)
	if err != nil {
		panic(err)
	}
	// Some results depend on the random order of Go's maps.
	for range 20 {
		if again, err := json.Marshal(constrained(wanted, operand)); err != nil || string(again) != string(first) {
			return
		}
	}
	write(lines, vector)
}

// constraint is the source of a random type, and a type whose values meet it.
func (j *judge) constraint(depth int) (string, cty.Type) {
	if depth == 0 || j.chance(25) {
		name := j.one("string", "string", "number", "bool", "any")
		switch name {
		case "number":
			return name, cty.Number
		case "bool":
			return name, cty.Bool
		case "any":
			return name, j.someType(1)
		default:
			return name, cty.String
		}
	}
	switch j.random.Intn(6) {
	case 0:
		source, ty := j.constraint(depth - 1)
		return "list(" + source + ")", anyOf(j, cty.List, cty.Set, tupleOf)(ty)
	case 1:
		source, ty := j.constraint(depth - 1)
		return "set(" + source + ")", anyOf(j, cty.List, cty.Set, tupleOf)(ty)
	case 2:
		source, ty := j.constraint(depth - 1)
		return "map(" + source + ")", anyOf(j, cty.Map, objectOf)(ty)
	case 3:
		first, firstType := j.constraint(depth - 1)
		second, secondType := j.constraint(depth - 1)
		return "tuple([" + first + ", " + second + "])", cty.Tuple([]cty.Type{firstType, secondType})
	default:
		return j.objectConstraint(depth)
	}
}

func (j *judge) objectConstraint(depth int) (string, cty.Type) {
	sources, attributes := []string{}, map[string]cty.Type{}
	for _, name := range []string{"a", "b", "c", "name"} {
		if j.chance(40) {
			continue
		}
		source, ty := j.constraint(depth - 1)
		switch j.random.Intn(4) {
		case 0:
			source = "optional(" + source + ")"
		case 1, 2:
			source = "optional(" + source + ", " + j.literal(source) + ")"
		}
		sources = append(sources, name+" = "+source)
		if !strings.HasPrefix(source, "optional") || j.chance(50) {
			attributes[name] = ty
		}
	}
	return "object({" + strings.Join(sources, ", ") + "})", cty.Object(attributes)
}

// literal is a default for a type; of an object it may leave attributes out.
func (j *judge) literal(wanted string) string {
	switch kind, _, _ := strings.Cut(wanted, "("); kind {
	case "string":
		return j.one(`"d"`, `"5"`, "null", "true")
	case "number":
		return j.one("5", `"5"`, "null", `"x"`)
	case "bool":
		return j.one("true", `"false"`, "null")
	case "list", "set":
		return j.one("[]", "[]", `["d"]`, "[{}]", "[1, 2]", "null")
	case "map":
		return j.one("{}", "{}", `{k = "d"}`, "{k = {}}", "{k = []}", "null")
	case "tuple":
		return j.one(`["d", 1]`, "null", "[{}, []]")
	case "object":
		return j.one("{}", "{}", "{}", `{a = "d"}`, "{name = {}}", `{a = 1, b = [], c = {}, name = "n"}`, "null")
	default:
		return j.one("null", "[]", `"d"`, "{}")
	}
}

func (j *judge) writeConstraint(lines *json.Encoder, source string, value string) {
	defer func() { _ = recover() }()
	vector := Constraint{Type: source, Source: value}
	if given := j.evaluate(value, places); given != nil {
		vector.Result = constrained(source, *given)
		write(lines, vector)
	}
}

func constrained(source string, given cty.Value) *Value {
	expression, diagnostics := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return nil
	}
	ty, defaults, diagnostics := typeexpr.TypeConstraintWithDefaults(expression)
	if diagnostics.HasErrors() {
		return nil
	}
	if defaults != nil {
		given = defaults.Apply(given)
	}
	result, err := convert.Convert(given, ty)
	if err != nil {
		return nil
	}
	return encode(result)
}

const types = `
string
number
bool
any
list(string)
set(string)
map(string)
list(any)
set(any)
map(any)
map(number)
list(list(string))
map(list(any))
tuple([string, number])
tuple([])
object({})
object({a = string})
object({a = string, b = number})
object({a = optional(string), b = optional(any)})
object({a = optional(string, "d"), b = optional(number, 5)})
object({name = string, tags = optional(list(string), ["x"])})
object({a = optional(object({x = optional(string, "i"), y = optional(bool)}), {})})
object({a = optional(object({x = optional(string, "i")}))})
list(object({name = string, tags = optional(set(string), []), size = optional(number, 1)}))
set(object({name = string, size = optional(number)}))
map(object({a = optional(string, "d"), b = optional(list(object({c = optional(number, 3)})), [{}])}))
list(map(object({a = optional(any, null)})))
tuple([object({a = optional(string, "t")}), string])
object({a = optional(map(string), {}), b = optional(list(any), [])})
object({a = any, b = optional(map(any))})
object({"quoted" = optional(string, "q")})
nope
list
list()
optional(string)
list(optional(string))
object({a = optional()})
object({a = optional(number, "x")})
object({a = optional(string, s)})
object({a = optional(string, upper("x"))})
object({a = optional(string, "x", "y")})
object([string])
tuple(string)
"string"
map(string, string)
`

const values = `
null
unknown
unknown_str
unknown_map
unknown_list
s
n
t
"5"
"true"
secret
id
list
numbers
set
map
partly
partly_map
secrets
secret_map
secret_list
objects
object
[]
{}
[1, "a"]
["a", 2]
["a", "b", "a"]
[null]
[[1], ["a"]]
[{}]
{a = "x"}
{a = 1, b = "2"}
{a = null}
{a = null, b = null}
{a = unknown_str, b = 1}
{a = {}}
{a = {x = null}}
{a = {x = "1", y = "true", z = 5}}
{a = {x = secret}}
{a = [1]}
{a = "x", b = [1, "y"], c = 3}
{a = {k = 1}, b = {k = "v"}}
{name = "n"}
[{name = "n"}]
[{name = "n"}, {name = "m", size = "3", tags = ["t", "t"]}]
[{name = "n", size = null}, {name = "n"}]
[{name = secret}]
{k = {a = "x"}, l = {b = [{c = 1}, {}]}}
{k = {}, l = null}
tomap({k = {a = "x"}})
tolist([{name = "n", size = 1}])
sensitive({a = "x"})
{a = tomap({x = "1"})}
[{m = {a = 1}}]
[{a = "x"}, 5]
`

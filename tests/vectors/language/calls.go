package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/opentofu/opentofu/internal/lang/marks"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Call is a call of a function. The result is missing if it is an error.
type Call struct {
	Function  string   `json:"f"`
	Arguments []*Value `json:"a"`
	Result    *Value   `json:"r,omitempty"`
}

// Functions whose result is not determined by their arguments, or that need unevaluated arguments.
var unpredictable = []string{
	"timestamp", "uuid", "bcrypt", "plantimestamp", "abspath", "pathexpand", "try", "can", "templatefile", "templatestring",
}

func writeCalls(j *judge, lines *json.Encoder) {
	for _, source := range picked {
		for _, call := range strings.Split(strings.TrimSpace(source), "\n") {
			j.writePicked(lines, strings.TrimSpace(call))
		}
	}
	for _, text := range j.longTexts() {
		j.writeCall(lines, "base64gzip", []cty.Value{cty.StringVal(text)})
	}
	for _, name := range j.functionNames() {
		for range 60 {
			j.writeCall(lines, name, j.arguments(name))
		}
	}
}

func (j *judge) writeCall(lines *json.Encoder, name string, arguments []cty.Value) {
	variables := map[string]cty.Value{}
	call := Call{Function: name, Arguments: []*Value{}}
	names := []string{}
	for i, argument := range arguments {
		variable := fmt.Sprintf("a%d", i)
		variables[variable] = argument
		names = append(names, variable)
		call.Arguments = append(call.Arguments, encode(argument))
	}
	result := j.evaluate(name+"("+strings.Join(names, ", ")+")", variables)
	if result != nil {
		call.Result = encode(*result)
	}
	write(lines, call)
}

// writePicked evaluates the arguments of a call in source first.
func (j *judge) writePicked(lines *json.Encoder, source string) {
	expression, diagnostics := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
	if diagnostics.HasErrors() {
		panic(source + ": " + diagnostics.Error())
	}
	call := expression.(*hclsyntax.FunctionCallExpr)
	arguments := []cty.Value{}
	for _, argument := range call.Args {
		value, diagnostics := argument.Value(&hcl.EvalContext{Variables: places, Functions: j.functions})
		if diagnostics.HasErrors() {
			panic(source + ": " + diagnostics.Error())
		}
		arguments = append(arguments, value)
	}
	j.writeCall(lines, call.Name, arguments)
}

func (j *judge) arguments(name string) []cty.Value {
	f := j.functions[name]
	arguments := []cty.Value{}
	for _, parameter := range f.Params() {
		arguments = append(arguments, j.argument(name, parameter))
	}
	if parameter := f.VarParam(); parameter != nil {
		for range j.random.Intn(4) {
			arguments = append(arguments, j.argument(name, *parameter))
		}
	}
	return arguments
}

func (j *judge) argument(name string, parameter function.Parameter) cty.Value {
	wanted := parameter.Type
	if wanted == cty.DynamicPseudoType {
		wanted = j.pick(typesFor(name))
	}
	switch chance := j.random.Intn(100); {
	case chance < 6:
		return cty.UnknownVal(wanted)
	case chance < 9:
		return cty.UnknownVal(wanted).RefineNotNull()
	case chance < 10:
		return cty.DynamicVal
	case chance < 13:
		return cty.NullVal(wanted)
	case chance < 15:
		return cty.NullVal(cty.DynamicPseudoType)
	case chance < 21:
		return j.value(name, wanted, 2).Mark(marks.Sensitive)
	case chance < 22:
		return j.value(name, wanted, 2).Mark(marks.Ephemeral)
	case chance < 26:
		return j.value(name, j.pick(anyType), 2)
	default:
		return j.value(name, wanted, 2)
	}
}

func (j *judge) pick(types []cty.Type) cty.Type {
	return types[j.random.Intn(len(types))]
}

// value is a random value; parts of collections may be unknown, null or marked.
func (j *judge) value(name string, ty cty.Type, depth int) cty.Value {
	switch {
	case ty == cty.String:
		pool := stringsFor(name)
		return cty.StringVal(pool[j.random.Intn(len(pool))])
	case ty == cty.Number:
		return cty.MustParseNumberVal(numbers[j.random.Intn(len(numbers))])
	case ty == cty.Bool:
		return cty.BoolVal(j.random.Intn(2) == 0)
	case ty == cty.DynamicPseudoType:
		return j.value(name, j.pick(anyType), depth-1)
	case ty.IsTupleType():
		items := []cty.Value{}
		for _, element := range ty.TupleElementTypes() {
			items = append(items, j.part(name, element, depth))
		}
		return cty.TupleVal(items)
	case ty.IsObjectType():
		entries := map[string]cty.Value{}
		for attribute, element := range ty.AttributeTypes() {
			entries[attribute] = cty.NullVal(element)
		}
		for _, attribute := range sortedKeys(entries) {
			entries[attribute] = j.part(name, ty.AttributeType(attribute), depth)
		}
		return cty.ObjectVal(entries)
	}
	element := ty.ElementType()
	if element == cty.DynamicPseudoType {
		element = j.pick(anyType[:8])
	}
	items := []cty.Value{}
	for range j.random.Intn(4) {
		items = append(items, j.part(name, element, depth))
	}
	switch {
	case ty.IsListType() && len(items) == 0:
		return cty.ListValEmpty(element)
	case ty.IsListType():
		return cty.ListVal(items)
	case ty.IsSetType() && len(items) == 0:
		return cty.SetValEmpty(element)
	case ty.IsSetType():
		return cty.SetVal(items)
	case len(items) == 0:
		return cty.MapValEmpty(element)
	default:
		entries := map[string]cty.Value{}
		for _, item := range items {
			entries[[]string{"a", "b", "c", "name", "ü"}[j.random.Intn(5)]] = item
		}
		return cty.MapVal(entries)
	}
}

func (j *judge) part(name string, ty cty.Type, depth int) cty.Value {
	switch chance := j.random.Intn(100); {
	case ty == cty.DynamicPseudoType:
		return j.value(name, ty, depth-1)
	case chance < 3:
		return cty.UnknownVal(ty)
	case chance < 5:
		return cty.NullVal(ty)
	case chance < 7:
		return j.value(name, ty, depth-1).Mark(marks.Sensitive)
	default:
		return j.value(name, ty, depth-1)
	}
}

func sortedKeys(entries map[string]cty.Value) []string {
	keys := []string{}
	for key := range entries {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// longTexts are of the kinds that are compressed: scripts, repetitions, and what has no pattern.
func (j *judge) longTexts() []string {
	words := strings.Fields("#!/bin/bash set -euo pipefail echo install apt-get update curl -sSL https://example.com/x | sh systemctl enable --now app.service a b c")
	texts := []string{strings.Repeat("a", 300), strings.Repeat("abc", 20000)}
	for _, size := range []int{5, 40, 300, 3000, 30000, 90000} {
		var script, noise strings.Builder
		for script.Len() < size {
			script.WriteString(words[j.random.Intn(len(words))] + j.one(" ", " ", "\n", fmt.Sprint(j.random.Intn(1000))))
			noise.WriteByte(byte(32 + j.random.Intn(95)))
		}
		texts = append(texts, script.String(), noise.String())
	}
	return texts
}

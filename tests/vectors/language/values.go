package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/opentofu/opentofu/internal/lang/marks"
	"github.com/zclconf/go-cty/cty"
)

// anyOf picks one of the options.
func anyOf[T any](j *judge, options ...T) T {
	return options[j.random.Intn(len(options))]
}

func (j *judge) chance(percent int) bool {
	return j.random.Intn(100) < percent
}

// someType is a random type whose nesting is at most depth.
func (j *judge) someType(depth int) cty.Type {
	if depth == 0 || j.chance(35) {
		return anyOf(j, cty.String, cty.String, cty.Number, cty.Bool)
	}
	switch j.random.Intn(5) {
	case 0:
		return cty.List(j.someType(depth - 1))
	case 1:
		return cty.Set(j.someType(depth - 1))
	case 2:
		return cty.Map(j.someType(depth - 1))
	case 3:
		elements := []cty.Type{}
		for range j.random.Intn(4) {
			elements = append(elements, j.someType(depth-1))
		}
		return cty.Tuple(elements)
	default:
		return cty.Object(j.attributes(depth - 1))
	}
}

func (j *judge) attributes(depth int) map[string]cty.Type {
	attributes := map[string]cty.Type{}
	for _, name := range []string{"a", "b", "c", "name"} {
		if j.chance(45) {
			attributes[name] = j.someType(depth)
		}
	}
	return attributes
}

// similar is the type itself, or one that differs from it in a place.
func (j *judge) similar(ty cty.Type) cty.Type {
	switch {
	case j.chance(30):
		return ty
	case j.chance(10):
		return j.someType(2)
	case ty.IsListType():
		return anyOf(j, cty.List, cty.Set, tupleOf)(j.similar(ty.ElementType()))
	case ty.IsSetType():
		return anyOf(j, cty.Set, cty.List, tupleOf)(j.similar(ty.ElementType()))
	case ty.IsMapType():
		return anyOf(j, cty.Map, cty.Map, objectOf)(j.similar(ty.ElementType()))
	case ty.IsTupleType():
		elements := []cty.Type{}
		for _, element := range ty.TupleElementTypes() {
			elements = append(elements, j.similar(element))
		}
		if len(elements) > 0 && j.chance(30) {
			elements = elements[1:]
		}
		return cty.Tuple(elements)
	case ty.IsObjectType():
		attributes := map[string]cty.Type{}
		for _, name := range sortedNames(ty.AttributeTypes()) {
			if !j.chance(15) {
				attributes[name] = j.similar(ty.AttributeType(name))
			}
		}
		if j.chance(15) {
			attributes["d"] = j.someType(1)
		}
		return cty.Object(attributes)
	default:
		return anyOf(j, cty.String, cty.Number, cty.Bool)
	}
}

func tupleOf(element cty.Type) cty.Type {
	return cty.Tuple([]cty.Type{element, element})
}

func objectOf(element cty.Type) cty.Type {
	return cty.Object(map[string]cty.Type{"a": element, "name": element})
}

func sortedNames(types map[string]cty.Type) []string {
	names := []string{}
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// some is a random value of a type. One of six is unknown, null or marked. Without `typed`, what is in tuples and objects
// may have no type; in a collection it has to.
func (j *judge) some(ty cty.Type, typed bool) cty.Value {
	switch chance := j.random.Intn(100); {
	case chance < 3:
		return cty.UnknownVal(ty)
	case chance < 7:
		return j.refined(ty)
	case chance < 11:
		return cty.NullVal(ty)
	case chance < 15:
		return j.whole(ty, typed).Mark(marks.Sensitive)
	case chance < 16:
		return anyOf(j, j.refined(ty), cty.NullVal(ty)).Mark(marks.Sensitive)
	case chance < 17:
		return j.whole(ty, typed).Mark(marks.Ephemeral)
	default:
		return j.whole(ty, typed)
	}
}

// inside is a random element or attribute.
func (j *judge) inside(ty cty.Type, typed bool) cty.Value {
	if !typed && j.chance(4) {
		return anyOf(j, cty.DynamicVal, cty.NullVal(cty.DynamicPseudoType))
	}
	return j.some(ty, typed)
}

func (j *judge) whole(ty cty.Type, typed bool) cty.Value {
	switch {
	case ty == cty.String:
		return cty.StringVal(anyOf(j, operandTexts...))
	case ty == cty.Number:
		return cty.MustParseNumberVal(j.digits())
	case ty == cty.Bool:
		return cty.BoolVal(j.chance(50))
	case ty.IsTupleType():
		items := []cty.Value{}
		for _, element := range ty.TupleElementTypes() {
			items = append(items, j.inside(element, typed))
		}
		return cty.TupleVal(items)
	case ty.IsObjectType():
		entries := map[string]cty.Value{}
		for _, name := range sortedNames(ty.AttributeTypes()) {
			entries[name] = j.inside(ty.AttributeType(name), typed)
		}
		return cty.ObjectVal(entries)
	case ty.IsMapType():
		entries := map[string]cty.Value{}
		for _, name := range []string{"a", "b", "name", "é", "0"} {
			if j.chance(35) {
				entries[name] = j.inside(ty.ElementType(), true)
			}
		}
		if len(entries) == 0 {
			return cty.MapValEmpty(ty.ElementType())
		}
		return cty.MapVal(entries)
	}
	items := []cty.Value{}
	for range j.random.Intn(4) {
		items = append(items, j.inside(ty.ElementType(), true))
	}
	switch {
	case ty.IsListType() && len(items) == 0:
		return cty.ListValEmpty(ty.ElementType())
	case ty.IsListType():
		return cty.ListVal(items)
	case len(items) == 0:
		return cty.SetValEmpty(ty.ElementType())
	default:
		return cty.SetVal(items)
	}
}

// refined is an unknown value with something known about it.
func (j *judge) refined(ty cty.Type) cty.Value {
	refinement := cty.UnknownVal(ty).Refine()
	if j.chance(60) {
		refinement = refinement.NotNull()
	}
	switch {
	case ty == cty.String && j.chance(60):
		refinement = refinement.StringPrefixFull(anyOf(j, "a", "i-", "é", "tr", "1", "x y", "e", "{", "[", "\""))
	case ty == cty.Number:
		if j.chance(60) {
			refinement = refinement.NumberRangeLowerBound(number(anyOf(j, "0", "1", "-2", "0.5")), j.chance(60))
		}
		if j.chance(60) {
			refinement = refinement.NumberRangeUpperBound(number(anyOf(j, "2", "5", "1e3", "2.5")), j.chance(60))
		}
	case ty.IsCollectionType():
		if j.chance(60) {
			refinement = refinement.CollectionLengthLowerBound(j.random.Intn(3))
		}
		if j.chance(60) {
			refinement = refinement.CollectionLengthUpperBound(2 + j.random.Intn(3))
		}
	}
	return refinement.NewValue()
}

// digits is a number as it stands in source.
func (j *judge) digits() string {
	switch j.random.Intn(6) {
	case 0:
		return fmt.Sprintf("%d.%d", j.random.Intn(100), j.random.Intn(1000))
	case 1:
		return fmt.Sprintf("-%d.%d", 1+j.random.Intn(4), j.random.Intn(10))
	case 2:
		return fmt.Sprintf("%d.%de%d", j.random.Intn(10), j.random.Intn(1000), j.random.Intn(50)-25)
	default:
		return anyOf(j, "0", "1", "2", "3", "-1", "-2", "4", "7", "10", "16", "0.5", "1.5", "100", "255", "1e3", "123456789012345678901234567890")
	}
}

var operandTexts = []string{
	"", "a", "b", "name", "abc", "Hello World", "true", "false", "0", "1", "-1", "12.5", "1e2", " 1", "é", "e\u0301", "\u212b", "👨\u200d👩\u200d👧",
	"a,b", "x\ny\n", "<&>", "\"", "\\", "${x}", "%{", "i-1", "null", "10.0.0.0/8", "[1]", "{\"a\":1}", "a: 1", "%s-%d", "2020-02-29T12:30:45Z", "[a-z]", "YQ==",
}

// spaced is a text for templates: line breaks, indentation, and characters that mean something.
func (j *judge) spaced() string {
	text := ""
	for range j.random.Intn(4) {
		text += anyOf(j, "a", "é", " ", "  ", "\t", "\n", "\n  ", "\n\n", "    x", "b c", "x\n", "-", "e\u0301", "\t", anyOf(j, "$", "%", "$$", "$${", "%%{", "}", "{", "~", "#"))
	}
	return text
}

// quoted is a text as it stands in a quoted template. What is escaped already stays.
func quoted(text string) string {
	return strings.NewReplacer("\n", "\\n", "\t", "\\t", "\"", "\\\"").Replace(text)
}

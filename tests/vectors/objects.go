package main

import (
	"sort"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

func sorted[V any](entries map[string]V) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// blockValue is a value of a block, close to the one it is made like, if any.
func (s *source) blockValue(block *Block, like cty.Value, unknown int) cty.Value {
	entries := map[string]cty.Value{}
	for _, name := range sorted(block.Attributes) {
		entries[name] = s.attributeValue(block.Attributes[name], part(like, name), unknown)
	}
	for _, name := range sorted(block.Blocks) {
		entries[name] = s.nestedValue(block.Blocks[name], part(like, name), unknown, false)
	}
	return cty.ObjectVal(entries)
}

func part(like cty.Value, name string) cty.Value {
	if like == cty.NilVal || like.IsNull() || !like.IsKnown() || !like.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return like.GetAttr(name)
}

func (s *source) attributeValue(attribute *Attribute, like cty.Value, unknown int) cty.Value {
	ty := attribute.schema().ImpliedType()
	switch {
	case like != cty.NilVal && !s.one(4):
		if attribute.Nested != nil && s.one(2) {
			break
		}
		return like
	case s.Intn(100) < unknown:
		return cty.UnknownVal(ty)
	case s.one(4):
		return cty.NullVal(ty)
	}
	if attribute.Nested != nil {
		return s.nestedValue(attribute.Nested, like, unknown, true)
	}
	return s.value(s.concrete(ty), unknown)
}

// nestedValue is the value of nested blocks, or of an attribute with nested attributes.
func (s *source) nestedValue(nested *Nested, like cty.Value, unknown int, attribute bool) cty.Value {
	if !attribute && unknown > 0 && s.one(30) {
		return cty.UnknownVal(nested.valueType(attribute))
	}
	switch nested.Nesting {
	case "single":
		if s.one(4) {
			return cty.NullVal(nested.valueType(attribute))
		}
		return s.blockValue(nested.Block, like, unknown)
	case "group":
		return s.blockValue(nested.Block, like, unknown)
	}
	likes := elements(like)
	if len(likes) > 0 && s.one(4) {
		s.Shuffle(len(likes), func(a, b int) { likes[a], likes[b] = likes[b], likes[a] })
	}
	items := []cty.Value{}
	for _, like := range likes {
		if !s.one(6) {
			items = append(items, s.blockValue(nested.Block, like, unknown))
		}
	}
	for len(items) < 3 && s.one(3) {
		items = append(items, s.blockValue(nested.Block, cty.NilVal, unknown))
	}
	return nested.collect(items, attribute)
}

func elements(like cty.Value) []cty.Value {
	if like == cty.NilVal || like.IsNull() || !like.IsKnown() {
		return nil
	}
	items := []cty.Value{}
	for it := like.ElementIterator(); it.Next(); {
		_, item := it.Element()
		items = append(items, item)
	}
	return items
}

func (n *Nested) element(attribute bool) cty.Type {
	if attribute {
		return (&Attribute{Nested: &Nested{Nesting: "single", Block: n.Block}}).schema().ImpliedType()
	}
	return n.Block.schema().ImpliedType()
}

func (n *Nested) valueType(attribute bool) cty.Type {
	element := n.element(attribute)
	switch {
	case n.Nesting == "single" || n.Nesting == "group":
		return element
	case n.Nesting == "set":
		return cty.Set(element)
	case element.HasDynamicTypes():
		return cty.DynamicPseudoType
	case n.Nesting == "list":
		return cty.List(element)
	default:
		return cty.Map(element)
	}
}

func (n *Nested) collect(items []cty.Value, attribute bool) cty.Value {
	element := n.element(attribute)
	entries := map[string]cty.Value{}
	for place, item := range items {
		entries["k"+strconv.Itoa(place)] = item
	}
	switch {
	case n.Nesting == "set":
		return set(items, element)
	case n.Nesting == "list" && element.HasDynamicTypes():
		return cty.TupleVal(items)
	case n.Nesting == "list":
		return list(items, element)
	case element.HasDynamicTypes():
		return cty.ObjectVal(entries)
	default:
		return mapOf(entries, element)
	}
}

// configured is the value as a configuration has it: what only the provider computes is null, as is most of what it may.
func (s *source) configured(block *Block, value cty.Value) cty.Value {
	return s.rewritten(block, value, func(attribute *Attribute, value cty.Value) cty.Value {
		computedOnly := attribute.has('c') && !attribute.has('o')
		if computedOnly || attribute.has('c') && s.one(2) {
			return cty.NullVal(attribute.schema().ImpliedType())
		}
		return value
	})
}

// completed is the value as a provider plans it: some of what it computes is unknown or made up.
func (s *source) completed(block *Block, value cty.Value, one int) cty.Value {
	return s.rewritten(block, value, func(attribute *Attribute, value cty.Value) cty.Value {
		ty := attribute.schema().ImpliedType()
		switch {
		case attribute.has('w'):
			return cty.NullVal(ty)
		case attribute.has('c') && value.IsNull() && s.one(2):
			return cty.UnknownVal(ty)
		case attribute.has('c') && s.one(one):
			return s.attributeValue(attribute, cty.NilVal, 20)
		}
		return value
	})
}

// rewritten is the value with each attribute, wherever it is, made by change.
func (s *source) rewritten(block *Block, value cty.Value, change func(*Attribute, cty.Value) cty.Value) cty.Value {
	if value.IsNull() || !value.IsKnown() {
		return value
	}
	entries := map[string]cty.Value{}
	for _, name := range sorted(block.Attributes) {
		attribute := block.Attributes[name]
		inner := change(attribute, value.GetAttr(name))
		if attribute.Nested != nil {
			inner = s.rewrittenNested(attribute.Nested, inner, change, true)
		}
		entries[name] = inner
	}
	for _, name := range sorted(block.Blocks) {
		entries[name] = s.rewrittenNested(block.Blocks[name], value.GetAttr(name), change, false)
	}
	return cty.ObjectVal(entries)
}

func (s *source) rewrittenNested(nested *Nested, value cty.Value, change func(*Attribute, cty.Value) cty.Value, attribute bool) cty.Value {
	if value.IsNull() || !value.IsKnown() {
		return value
	}
	if nested.Nesting == "single" || nested.Nesting == "group" {
		return s.rewritten(nested.Block, value, change)
	}
	items := []cty.Value{}
	for _, item := range elements(value) {
		items = append(items, s.rewritten(nested.Block, item, change))
	}
	return nested.collect(items, attribute)
}

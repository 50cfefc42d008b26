package main

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// planned returns what an object will be, and the attributes that need another object.
func (c *cloud) planned(b block, prior, proposed, config cty.Value) (cty.Value, []*tftypes.AttributePath) {
	fields := undecided(b, proposed).AsValueMap()
	for name, a := range b.Attributes {
		switch {
		case !config.GetAttr(name).IsNull():
		case a.Default != nil:
			fields[name] = a.initial()
		case a.From != "" && !c.config.GetAttr(a.From).IsNull():
			fields[name] = c.config.GetAttr(a.From)
		}
	}
	if prior.IsNull() || cty.ObjectVal(fields).RawEquals(prior) {
		return cty.ObjectVal(fields), nil
	}
	var replace []*tftypes.AttributePath
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		a := b.Attributes[name]
		if a.is("renewed") {
			fields[name] = cty.UnknownVal(a.cty())
		}
		if a.is("replaces") && !fields[name].RawEquals(prior.GetAttr(name)) {
			replace = append(replace, tftypes.NewAttributePath().WithAttributeName(name))
		}
	}
	return cty.ObjectVal(fields), replace
}

// undecided makes unknown what the cloud decides and has not decided yet.
func undecided(b block, value cty.Value) cty.Value {
	return eachPart(b, value, func(a attribute, value cty.Value) cty.Value {
		switch {
		case a.is("write_only"):
			return cty.NullVal(a.cty())
		case value.IsNull() && a.Default != nil:
			return a.initial()
		case value.IsNull() && a.is("computed"):
			return cty.UnknownVal(a.cty())
		}
		return value
	})
}

// eachPart replaces the attributes of a block, of its blocks, and those that are nested in attributes.
func eachPart(b block, value cty.Value, of func(attribute, cty.Value) cty.Value) cty.Value {
	if value.IsNull() || !value.IsKnown() {
		return value
	}
	fields := eachAttribute(b.Attributes, value, of)
	for name, nested := range b.Blocks {
		inner := func(item cty.Value) cty.Value { return eachPart(nested.block, item, of) }
		fields[name] = eachItem(nested.Nesting, value.GetAttr(name), inner)
	}
	return cty.ObjectVal(fields)
}

func eachAttribute(
	attributes map[string]attribute, value cty.Value, of func(attribute, cty.Value) cty.Value,
) map[string]cty.Value {
	fields := map[string]cty.Value{}
	for name, a := range attributes {
		fields[name] = of(a, value.GetAttr(name))
		if a.Nested == nil {
			continue
		}
		fields[name] = eachItem(a.mode(), fields[name], func(item cty.Value) cty.Value {
			if item.IsNull() || !item.IsKnown() {
				return item
			}
			return cty.ObjectVal(eachAttribute(a.Nested, item, of))
		})
	}
	return fields
}

// eachItem replaces the items of a collection, or the object of the modes `single` and `group`.
func eachItem(mode string, value cty.Value, of func(cty.Value) cty.Value) cty.Value {
	if value.IsNull() || !value.IsKnown() {
		return value
	}
	if mode == "single" || mode == "group" {
		return of(value)
	}
	if value.LengthInt() == 0 {
		return value
	}
	if mode == "map" {
		items := value.AsValueMap()
		for key, item := range items {
			items[key] = of(item)
		}
		return cty.MapVal(items)
	}
	items := value.AsValueSlice()
	for index, item := range items {
		items[index] = of(item)
	}
	if mode == "set" {
		return cty.SetVal(items)
	}
	return cty.ListVal(items)
}

package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// made is a value with everything in it known: what a provider would draw is the word "made".
func made(ctx context.Context, value attr.Value) attr.Value {
	switch value := value.(type) {
	case types.String:
		if value.IsUnknown() {
			return types.StringValue("made")
		}
	case types.Object:
		if value.IsNull() || value.IsUnknown() {
			return value
		}
		attributes := map[string]attr.Value{}
		for name, attribute := range value.Attributes() {
			attributes[name] = made(ctx, attribute)
		}
		return types.ObjectValueMust(value.AttributeTypes(ctx), attributes)
	case types.List:
		if value.IsNull() || value.IsUnknown() {
			return value
		}
		return types.ListValueMust(value.ElementType(ctx), each(ctx, value.Elements()))
	case types.Set:
		if value.IsNull() || value.IsUnknown() {
			return value
		}
		return types.SetValueMust(value.ElementType(ctx), each(ctx, value.Elements()))
	case types.Map:
		if value.IsNull() || value.IsUnknown() {
			return value
		}
		elements := map[string]attr.Value{}
		for key, element := range value.Elements() {
			elements[key] = made(ctx, element)
		}
		return types.MapValueMust(value.ElementType(ctx), elements)
	}
	return value
}

func each(ctx context.Context, elements []attr.Value) []attr.Value {
	all := make([]attr.Value, 0, len(elements))
	for _, element := range elements {
		all = append(all, made(ctx, element))
	}
	return all
}

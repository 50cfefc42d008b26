package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// withoutUnknowns replaces the unknown strings in a value by "made".
func withoutUnknowns(ctx context.Context, value attr.Value) attr.Value {
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
			attributes[name] = withoutUnknowns(ctx, attribute)
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
			elements[key] = withoutUnknowns(ctx, element)
		}
		return types.MapValueMust(value.ElementType(ctx), elements)
	}
	return value
}

func each(ctx context.Context, elements []attr.Value) []attr.Value {
	all := make([]attr.Value, 0, len(elements))
	for _, element := range elements {
		all = append(all, withoutUnknowns(ctx, element))
	}
	return all
}

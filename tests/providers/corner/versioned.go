package main

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// versioned has a schema that was changed: in version 0 its `title` was called `label`. It also takes over states of
// `corner_thing`.
type versioned struct{ configured }

type versionedModel struct {
	ID    types.String `tfsdk:"id"`
	Title types.String `tfsdk:"title"`
}

func (*versioned) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_versioned"
}

func (*versioned) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{Version: 1, Attributes: map[string]schema.Attribute{
		"id":    schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"title": schema.StringAttribute{Optional: true},
	}}
}

func (*versioned) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{0: {
		StateUpgrader: func(ctx context.Context, request resource.UpgradeStateRequest, response *resource.UpgradeStateResponse) {
			var before struct{ ID, Label string }
			if err := json.Unmarshal(request.RawState.JSON, &before); err != nil {
				response.Diagnostics.AddError("The state of version 0 cannot be read", err.Error())
				return
			}
			after := versionedModel{ID: types.StringValue(before.ID), Title: types.StringValue(before.Label)}
			response.Diagnostics.Append(response.State.Set(ctx, &after)...)
		},
	}}
}

func (*versioned) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{
		StateMover: func(ctx context.Context, request resource.MoveStateRequest, response *resource.MoveStateResponse) {
			if request.SourceTypeName != "corner_thing" {
				return
			}
			var before struct{ ID, Name string }
			if err := json.Unmarshal(request.SourceRawState.JSON, &before); err != nil {
				response.Diagnostics.AddError("The state cannot be read", err.Error())
				return
			}
			after := versionedModel{ID: types.StringValue(before.ID), Title: types.StringValue(before.Name)}
			response.Diagnostics.Append(response.TargetState.Set(ctx, &after)...)
		},
	}}
}

func (r *versioned) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var model versionedModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	model.ID = types.StringValue(draw())
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
}

func (*versioned) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (*versioned) Update(_ context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	response.State.Raw = request.Plan.Raw
}

func (*versioned) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// versioned has a schema with two versions: in version 0, its `title` was called `label`. States of `corner_thing` can
// be moved to it. With CORNER_SCHEMA=0 its schema has version 0. The label `stuck` cannot be upgraded.
type versioned struct{ existing }

type versionedModel struct {
	ID    types.String `tfsdk:"id"`
	Title types.String `tfsdk:"title"`
}

func (*versioned) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_versioned"
}

func isOld() bool { return os.Getenv("CORNER_SCHEMA") == "0" }

func (*versioned) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	version, name := int64(1), "title"
	if isOld() {
		version, name = 0, "label"
	}
	response.Schema = schema.Schema{Version: version, Attributes: map[string]schema.Attribute{
		"id": identifier(),
		name: schema.StringAttribute{Optional: true},
	}}
}

func (*versioned) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	if isOld() {
		return nil
	}
	return map[int64]resource.StateUpgrader{0: {
		StateUpgrader: func(ctx context.Context, request resource.UpgradeStateRequest, response *resource.UpgradeStateResponse) {
			var before struct{ ID, Label string }
			if err := json.Unmarshal(request.RawState.JSON, &before); err != nil {
				response.Diagnostics.AddError("The state of version 0 cannot be read", err.Error())
				return
			}
			if before.Label == "stuck" {
				response.Diagnostics.AddError("The state cannot be upgraded", "it is stuck")
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
			response.Diagnostics.AddWarning("Of the thing only the name is kept", before.Name)
			after := versionedModel{ID: types.StringValue(before.ID), Title: types.StringValue(before.Name)}
			response.Diagnostics.Append(response.TargetState.Set(ctx, &after)...)
		},
	}}
}

func (r *versioned) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	response.State.Raw = request.Plan.Raw
	id := types.StringValue(newID())
	if !r.put(id, types.StringNull(), &response.Diagnostics) {
		return
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("id"), id)...)
}

func (r *versioned) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var id types.String
	response.Diagnostics.Append(request.State.GetAttribute(ctx, path.Root("id"), &id)...)
	r.find(ctx, id, types.StringNull(), response)
}

func (*versioned) Update(_ context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	response.State.Raw = request.Plan.Raw
}

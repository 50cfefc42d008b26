package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// identified has an identity: its region, which is optional for an import, and its name. The files `crash-before` and
// `crash-after` let its create crash.
type identified struct{ existing }

type identifiedModel struct {
	ID     types.String `tfsdk:"id"`
	Region types.String `tfsdk:"region"`
	Name   types.String `tfsdk:"name"`
}

type identity struct {
	Region types.String `tfsdk:"region"`
	Name   types.String `tfsdk:"name"`
}

func (*identified) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_identified"
}

func (*identified) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":     identifier(),
		"region": schema.StringAttribute{Required: true, PlanModifiers: replace},
		"name":   schema.StringAttribute{Required: true, PlanModifiers: replace},
	}}
}

func (*identified) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, response *resource.IdentitySchemaResponse) {
	response.IdentitySchema = identityschema.Schema{Version: 1, Attributes: map[string]identityschema.Attribute{
		"region": identityschema.StringAttribute{OptionalForImport: true},
		"name":   identityschema.StringAttribute{RequiredForImport: true},
	}}
}

// UpgradeIdentity upgrades from version 0, which had no region.
func (*identified) UpgradeIdentity(context.Context) map[int64]resource.IdentityUpgrader {
	return map[int64]resource.IdentityUpgrader{0: {
		PriorSchema: &identityschema.Schema{Attributes: map[string]identityschema.Attribute{
			"name": identityschema.StringAttribute{RequiredForImport: true},
		}},
		IdentityUpgrader: func(ctx context.Context, request resource.UpgradeIdentityRequest, response *resource.UpgradeIdentityResponse) {
			var name types.String
			response.Diagnostics.Append(request.Identity.GetAttribute(ctx, path.Root("name"), &name)...)
			response.Diagnostics.Append(response.Identity.Set(ctx, &identity{Region: types.StringValue("home"), Name: name})...)
		},
	}}
}

func (r *identified) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var model identifiedModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	if response.Diagnostics.HasError() {
		return
	}
	model.ID = types.StringValue(model.Region.ValueString() + "-" + model.Name.ValueString())
	r.world.crash("before")
	if !r.put(model.ID, types.StringNull(), &response.Diagnostics) {
		return
	}
	r.world.crash("after")
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	response.Diagnostics.Append(response.Identity.Set(ctx, &identity{Region: model.Region, Name: model.Name})...)
}

func (r *identified) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var model identifiedModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if _, exists := r.find(ctx, model.ID, types.StringNull(), response); exists {
		response.Diagnostics.Append(response.Identity.Set(ctx, &identity{Region: model.Region, Name: model.Name})...)
	}
}

func (*identified) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	response.State.Raw = request.Plan.Raw
}

// ImportState accepts the name as id, or an identity.
func (*identified) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	found := identity{Region: types.StringValue("home"), Name: types.StringValue(request.ID)}
	if request.ID == "" {
		response.Diagnostics.Append(request.Identity.Get(ctx, &found)...)
		if found.Region.IsNull() {
			found.Region = types.StringValue("home")
		}
	}
	model := identifiedModel{
		ID:     types.StringValue(found.Region.ValueString() + "-" + found.Name.ValueString()),
		Region: found.Region,
		Name:   found.Name,
	}
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	response.Diagnostics.Append(response.Identity.Set(ctx, &found)...)
}

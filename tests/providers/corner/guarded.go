package main

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// guarded is changed and destroyed only with its private data. While its text is `locked`, it cannot be destroyed.
type guarded struct{ existing }

type guardedModel struct {
	ID       types.String `tfsdk:"id"`
	Place    types.String `tfsdk:"place"`
	Text     types.String `tfsdk:"text"`
	SecretWO types.String `tfsdk:"secret_wo"`
}

const permit = "permit"

func (*guarded) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_guarded"
}

func (*guarded) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":        identifier(),
		"place":     schema.StringAttribute{Required: true, PlanModifiers: replace},
		"text":      schema.StringAttribute{Required: true},
		"secret_wo": schema.StringAttribute{Optional: true, WriteOnly: true},
	}}
}

// permitted reports an error unless the private data are those of the object.
func (m *guardedModel) permitted(ctx context.Context, private interface {
	GetKey(context.Context, string) ([]byte, diag.Diagnostics)
}, diagnostics *diag.Diagnostics) bool {
	found, problems := private.GetKey(ctx, permit)
	diagnostics.Append(problems...)
	if string(found) != strconv.Quote(m.ID.ValueString()) {
		diagnostics.AddError("The private data are lost", "found "+strconv.Quote(string(found)))
	}
	return !diagnostics.HasError()
}

func (r *guarded) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var model guardedModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	model.ID = types.StringValue(newID())
	if r.put(model.ID, model.Text, &response.Diagnostics) {
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
		response.Diagnostics.Append(response.Private.SetKey(ctx, permit, []byte(strconv.Quote(model.ID.ValueString())))...)
	}
}

func (r *guarded) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var model guardedModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	r.find(ctx, model.ID, model.Text, response)
}

func (r *guarded) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var model guardedModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	if model.permitted(ctx, request.Private, &response.Diagnostics) && r.put(model.ID, model.Text, &response.Diagnostics) {
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	}
}

func (r *guarded) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var model guardedModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	switch {
	case !model.permitted(ctx, request.Private, &response.Diagnostics):
	case model.Text.ValueString() == "locked":
		response.Diagnostics.AddError("It is locked", "it cannot be destroyed")
	default:
		r.existing.Delete(ctx, request, response)
	}
}

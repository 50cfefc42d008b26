package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// thing has attributes of every kind. Only its text is stored in the world.
type thing struct{ existing }

type thingModel struct {
	ID              types.String  `tfsdk:"id"`
	Name            types.String  `tfsdk:"name"`
	Text            types.String  `tfsdk:"text"`
	Amount          types.Number  `tfsdk:"amount"`
	Count           types.Int64   `tfsdk:"count_of"`
	Tags            types.Map     `tfsdk:"tags"`
	Names           types.Set     `tfsdk:"names"`
	Any             types.Dynamic `tfsdk:"any"`
	Password        types.String  `tfsdk:"password"`
	Token           types.String  `tfsdk:"token"`
	SecretWO        types.String  `tfsdk:"secret_wo"`
	SecretWOVersion types.Int64   `tfsdk:"secret_wo_version"`
	SecretLength    types.Int64   `tfsdk:"secret_length"`
	One             types.Object  `tfsdk:"one"`
	Many            types.List    `tfsdk:"many"`
	Unordered       types.Set     `tfsdk:"unordered"`
	ByKey           types.Map     `tfsdk:"by_key"`
	Rule            types.List    `tfsdk:"rule"`
}

func (*thing) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_thing"
}

func inner() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"key":   schema.StringAttribute{Required: true},
		"value": schema.StringAttribute{Optional: true},
		"made":  identifier(),
	}
}

func (*thing) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	nested := schema.NestedAttributeObject{Attributes: inner()}
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	response.Schema = schema.Schema{
		Description: "Attributes of every kind.",
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, PlanModifiers: keep},
			"name": schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
			"text": schema.StringAttribute{Optional: true},
			// Any precision.
			"amount":   schema.NumberAttribute{Optional: true},
			"count_of": schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(3)},
			"tags":     schema.MapAttribute{Optional: true, ElementType: types.StringType},
			"names":    schema.SetAttribute{Optional: true, ElementType: types.StringType},
			"any":      schema.DynamicAttribute{Optional: true},
			"password": schema.StringAttribute{Optional: true, Sensitive: true},
			// A secret that the provider generates.
			"token":             schema.StringAttribute{Computed: true, Sensitive: true, PlanModifiers: keep},
			"secret_wo":         schema.StringAttribute{Optional: true, WriteOnly: true},
			"secret_wo_version": schema.Int64Attribute{Optional: true},
			// Shows whether the provider received the write-only value.
			"secret_length": schema.Int64Attribute{Computed: true},
			"one":           schema.SingleNestedAttribute{Optional: true, Attributes: inner()},
			"many":          schema.ListNestedAttribute{Optional: true, NestedObject: nested},
			"unordered":     schema.SetNestedAttribute{Optional: true, NestedObject: nested},
			"by_key":        schema.MapNestedAttribute{Optional: true, NestedObject: nested},
		},
		Blocks: map[string]schema.Block{
			"rule": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: inner()}},
		},
	}
}

// finish replaces all unknown values.
func (r *thing) finish(ctx context.Context, model *thingModel, secret types.String) {
	if model.ID.IsUnknown() {
		model.ID = types.StringValue(newID())
	}
	if model.Token.IsUnknown() {
		model.Token = types.StringValue("token-" + newID())
	}
	model.SecretLength = types.Int64Value(int64(len(secret.ValueString())))
	model.SecretWO = types.StringNull()
	model.One = withoutUnknowns(ctx, model.One).(types.Object)
	model.Many = withoutUnknowns(ctx, model.Many).(types.List)
	model.Unordered = withoutUnknowns(ctx, model.Unordered).(types.Set)
	model.ByKey = withoutUnknowns(ctx, model.ByKey).(types.Map)
	model.Rule = withoutUnknowns(ctx, model.Rule).(types.List)
}

func (r *thing) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var model thingModel
	var secret types.String
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	response.Diagnostics.Append(request.Config.GetAttribute(ctx, path.Root("secret_wo"), &secret)...)
	if response.Diagnostics.HasError() {
		return
	}
	r.finish(ctx, &model, secret)
	if r.put(model.ID, model.Text, &response.Diagnostics) {
		r.world.count("create", model.ID)
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	}
}

func (r *thing) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var id, before types.String
	var count types.Int64
	response.Diagnostics.Append(request.State.GetAttribute(ctx, path.Root("count_of"), &count)...)
	response.Diagnostics.Append(request.State.GetAttribute(ctx, path.Root("id"), &id)...)
	response.Diagnostics.Append(request.State.GetAttribute(ctx, path.Root("text"), &before)...)
	text, exists := r.find(ctx, id, before, response)
	if exists && text != before.ValueString() {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("text"), text)...)
	}
	// Only the id of an imported object is known before.
	if exists && count.IsNull() {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("count_of"), 3)...)
	}
}

func (r *thing) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var model thingModel
	var secret types.String
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	response.Diagnostics.Append(request.Config.GetAttribute(ctx, path.Root("secret_wo"), &secret)...)
	if response.Diagnostics.HasError() {
		return
	}
	r.finish(ctx, &model, secret)
	if r.put(model.ID, model.Text, &response.Diagnostics) {
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	}
}

// ImportState finds an object by its id; `missing` is one that does not exist.
func (r *thing) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), request, response)
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("name"), "imported")...)
}

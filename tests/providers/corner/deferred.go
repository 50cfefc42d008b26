package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// deferred is deferred while the object that it needs does not exist. It fails if the client does not allow deferral.
type deferred struct{ configured }

func (*deferred) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_deferred"
}

func (*deferred) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"needs": schema.StringAttribute{Required: true},
	}}
}

func (r *deferred) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() {
		return
	}
	var needs types.String
	response.Diagnostics.Append(request.Plan.GetAttribute(ctx, path.Root("needs"), &needs)...)
	_, exists, _ := r.world.read(needs.ValueString(), "")
	switch {
	case exists:
	case request.ClientCapabilities.DeferralAllowed:
		response.Deferred = &resource.Deferred{Reason: resource.DeferredReasonAbsentPrereq}
	default:
		response.Diagnostics.AddAttributeError(path.Root("needs"), "What it needs is not there", needs.ValueString())
	}
}

func (*deferred) Create(_ context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	response.State.Raw = request.Plan.Raw
}

func (*deferred) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (*deferred) Update(_ context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	response.State.Raw = request.Plan.Raw
}

func (*deferred) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

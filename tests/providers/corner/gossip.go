package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	lookups "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// gossip warns in every call, and includes its secrets in the warning: the configured one, and the generated one. The
// latter is the text of the object in the world, so that a read may find another one.
type gossip struct{ existing }

type gossipModel struct {
	ID     types.String `tfsdk:"id"`
	Secret types.String `tfsdk:"secret"`
	Token  types.String `tfsdk:"token"`
}

func (m *gossipModel) warn(diagnostics *diag.Diagnostics) {
	diagnostics.AddWarning("I should not say", fmt.Sprintf("secret <%s>, token <%s>", m.Secret.ValueString(), m.Token.ValueString()))
}

func (*gossip) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_gossip"
}

func (*gossip) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	token := identifier()
	token.Sensitive = true
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":     identifier(),
		"secret": schema.StringAttribute{Optional: true, Sensitive: true},
		"token":  token,
	}}
}

func (*gossip) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	var model gossipModel
	if request.Plan.Raw.IsNull() {
		response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	} else {
		response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	}
	model.warn(&response.Diagnostics)
}

func (g *gossip) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	var model gossipModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	model.ID, model.Token = types.StringValue(newID()), types.StringValue("canary-token-"+newID())
	if g.put(model.ID, model.Token, &response.Diagnostics) {
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
		model.warn(&response.Diagnostics)
	}
}

func (g *gossip) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var model gossipModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if token, exists := g.find(ctx, model.ID, model.Token, response); exists {
		model.Token = types.StringValue(token)
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	}
	model.warn(&response.Diagnostics)
}

func (*gossip) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	var model gossipModel
	response.Diagnostics.Append(request.Plan.Get(ctx, &model)...)
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	model.warn(&response.Diagnostics)
}

func (g *gossip) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var model gossipModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	g.existing.Delete(ctx, request, response)
	model.warn(&response.Diagnostics)
}

func (*gossip) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), request, response)
	response.Diagnostics.AddWarning("I should not say", "an import looks for "+request.ID)
}

// rumour is the data source of the same name.
type rumour struct{}

func (*rumour) Metadata(_ context.Context, _ datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = "corner_gossip"
}

func (*rumour) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	response.Schema = lookups.Schema{Attributes: map[string]lookups.Attribute{
		"id":     lookups.StringAttribute{Optional: true},
		"secret": lookups.StringAttribute{Optional: true, Sensitive: true},
		"token":  lookups.StringAttribute{Computed: true, Sensitive: true},
	}}
}

func (*rumour) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var model gossipModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	model.Token = types.StringValue("canary-rumour-" + newID())
	response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	model.warn(&response.Diagnostics)
}

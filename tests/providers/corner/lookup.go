package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// lookup is the data source `corner_lookup`, which reads the text of an object.
type lookup struct{ world *world }

type lookupModel struct {
	ID   types.String `tfsdk:"id"`
	Text types.String `tfsdk:"text"`
}

func (*lookup) Metadata(_ context.Context, _ datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = "corner_lookup"
}

func (*lookup) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":   schema.StringAttribute{Required: true},
		"text": schema.StringAttribute{Computed: true},
	}}
}

func (l *lookup) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if world, ok := request.ProviderData.(*world); ok {
		l.world = world
	}
}

func (l *lookup) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	var model lookupModel
	response.Diagnostics.Append(request.Config.Get(ctx, &model)...)
	text, exists, err := l.world.read(model.ID.ValueString(), "")
	switch {
	case err != nil:
		response.Diagnostics.AddError("The object cannot be read", err.Error())
	case !exists:
		response.Diagnostics.AddAttributeError(path.Root("id"), "There is no such object", model.ID.ValueString())
	default:
		model.Text = types.StringValue(text)
		response.Diagnostics.Append(response.State.Set(ctx, &model)...)
	}
}

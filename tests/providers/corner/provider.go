package main

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/metaschema"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type corner struct {
	// The world of the last configuration.
	world *world
}

type configuration struct {
	Directory types.String `tfsdk:"folder"`
	Secret    types.String `tfsdk:"secret"`
	Fail      types.String `tfsdk:"fail"`
	Warn      types.String `tfsdk:"warn"`
}

func (*corner) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName = "corner"
	response.Version = "1.0.0"
}

func (*corner) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"folder": schema.StringAttribute{Optional: true, Description: "where objects are kept; without it they are not"},
		"secret": schema.StringAttribute{Optional: true, Sensitive: true, Description: "printed to the log, as providers should not"},
		"fail":   schema.StringAttribute{Optional: true, Description: "refuse the configuration with this text"},
		"warn":   schema.StringAttribute{Optional: true, Description: "accept it, and warn with this text"},
	}}
}

// MetaSchema makes clients send `provider_meta`.
func (*corner) MetaSchema(_ context.Context, _ provider.MetaSchemaRequest, response *provider.MetaSchemaResponse) {
	response.Schema = metaschema.Schema{Attributes: map[string]metaschema.Attribute{
		"module": metaschema.StringAttribute{Optional: true},
	}}
}

func (c *corner) Configure(_ context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var config configuration
	response.Diagnostics.Append(request.Config.Get(context.Background(), &config)...)
	if response.Diagnostics.HasError() {
		return
	}
	if text := config.Fail.ValueString(); text != "" {
		response.Diagnostics.AddAttributeError(path.Root("fail"), "The configuration is refused", text)
		return
	}
	if text := config.Warn.ValueString(); text != "" {
		response.Diagnostics.AddAttributeWarning(path.Root("warn"), "The configuration is old", text)
	}
	if secret := config.Secret.ValueString(); secret != "" {
		// Not through the log of the framework, like a library that does not use it.
		_, _ = os.Stderr.WriteString("connecting with password " + secret + "\n")
		_, _ = os.Stdout.WriteString("printed: password " + secret + "\n")
	}
	world := &world{directory: config.Directory.ValueString()}
	c.world = world
	response.ResourceData = world
	response.DataSourceData = world
}

func (*corner) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &thing{} },
		func() resource.Resource { return &trouble{} },
		func() resource.Resource { return &identified{} },
		func() resource.Resource { return &versioned{} },
		func() resource.Resource { return &counted{} },
		func() resource.Resource { return &guarded{} },
		func() resource.Resource { return &deferred{} },
		func() resource.Resource { return &gossip{} },
	}
}

func (*corner) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &lookup{} },
		func() datasource.DataSource { return &rumour{} },
	}
}

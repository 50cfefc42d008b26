package main

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// counted counts its updates in its private data, so that `updates` shows whether the client lost them.
type counted struct{ configured }

type countedModel struct {
	Text    types.String `tfsdk:"text"`
	Updates types.Int64  `tfsdk:"updates"`
}

const counter = "updates"

func (*counted) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_counted"
}

func (*counted) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"text":    schema.StringAttribute{Optional: true},
		"updates": schema.Int64Attribute{Computed: true},
	}}
}

func (*counted) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	response.State.Raw = request.Plan.Raw
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("updates"), int64(0))...)
	response.Diagnostics.Append(response.Private.SetKey(ctx, counter, []byte("0"))...)
}

func (*counted) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (*counted) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	before, diagnostics := request.Private.GetKey(ctx, counter)
	response.Diagnostics.Append(diagnostics...)
	count, err := strconv.ParseInt(string(before), 10, 64)
	if err != nil {
		response.Diagnostics.Append(diag.NewErrorDiagnostic("The private data are lost", err.Error()))
		return
	}
	response.State.Raw = request.Plan.Raw
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("updates"), count+1)...)
	response.Diagnostics.Append(response.Private.SetKey(ctx, counter, []byte(strconv.FormatInt(count+1, 10)))...)
}

func (*counted) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// trouble fails on demand. Each `on_` attribute selects what happens in that call:
//
//	error    an error diagnostic at the attribute, without a change
//	warning  a warning, and the call succeeds
//	partial  the object is changed, and the state is returned together with an error
//	panic    the process panics
//	exit     the process exits, with a message on standard error
//	hang     the call never returns
//	slow     the call returns when the provider is stopped, or the file `release` is in its directory
//	invalid  the response contradicts the plan
//
// `swell` allocates 170 MiB and keeps them. `grow` allocates memory until it is exhausted. `grow`, `panic`, `exit` and
// `hang` happen after the object was changed.
type trouble struct{ existing }

type troubleModel struct {
	ID       types.String `tfsdk:"id"`
	Text     types.String `tfsdk:"text"`
	OnPlan   types.String `tfsdk:"on_plan"`
	OnCreate types.String `tfsdk:"on_create"`
	OnRead   types.String `tfsdk:"on_read"`
	OnUpdate types.String `tfsdk:"on_update"`
	OnDelete types.String `tfsdk:"on_delete"`
}

func (*trouble) Metadata(_ context.Context, _ resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = "corner_trouble"
}

func (*trouble) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	what := schema.StringAttribute{Optional: true}
	response.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":        identifier(),
		"text":      schema.StringAttribute{Optional: true},
		"on_plan":   what,
		"on_create": what,
		"on_read":   what,
		"on_update": what,
		"on_delete": what,
	}}
}

// failBefore fails before the change, and reports whether it did.
func (r *trouble) failBefore(attribute, what string, diagnostics *diag.Diagnostics) bool {
	if r.failuresDisabled() {
		return false
	}
	switch what {
	case "error":
		diagnostics.AddAttributeError(path.Root(attribute), "It failed as asked", "nothing was done")
		return true
	case "warning":
		diagnostics.AddWarning("It might have failed", "but it did not")
	}
	return false
}

// failAfter fails after the change.
func (r *trouble) failAfter(ctx context.Context, attribute, what string, diagnostics *diag.Diagnostics) {
	if r.failuresDisabled() {
		return
	}
	switch what {
	case "partial":
		diagnostics.AddAttributeError(path.Root(attribute), "It failed halfway", "the object is there")
	case "panic":
		panic("the provider panics as asked")
	case "exit":
		// Not with os.Stderr, which is a pipe to the client that is closed at the exit.
		println("giving up as asked")
		os.Exit(3)
	case "swell":
		retained = make([]byte, 170<<20)
		for i := 0; i < len(retained); i += 4096 {
			retained[i] = 1
		}
	case "grow":
		var all [][]byte
		for len(all) < 128 {
			chunk := make([]byte, 16<<20)
			for i := 0; i < len(chunk); i += 4096 {
				chunk[i] = 1
			}
			all = append(all, chunk)
		}
		panic("there is enough memory")
	case "hang":
		r.started()
		select {}
	case "slow":
		r.started()
		if !r.released(ctx) {
			diagnostics.AddAttributeError(path.Root(attribute), "It was stopped", "the object is there")
		}
	default:
		r.harm(attribute, what, diagnostics)
	}
}

// failuresDisabled reports whether the test has disabled all failures: the file `peace` is in the directory.
func (r *trouble) failuresDisabled() bool {
	if r.world == nil || r.world.directory == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(r.world.directory, "peace"))
	return err == nil
}

// started signals to the test that the call is running.
func (r *trouble) started() {
	if r.world != nil && r.world.directory != "" {
		_ = os.WriteFile(filepath.Join(r.world.directory, "started"), nil, 0o600)
	}
}

func (r *trouble) released(ctx context.Context) bool {
	for {
		if _, err := os.Stat(filepath.Join(r.world.directory, "release")); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *trouble) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if request.Plan.Raw.IsNull() {
		return
	}
	var what types.String
	response.Diagnostics.Append(request.Plan.GetAttribute(ctx, path.Root("on_plan"), &what)...)
	if r.failBefore("on_plan", what.ValueString(), &response.Diagnostics) {
		return
	}
	r.failAfter(ctx, "on_plan", what.ValueString(), &response.Diagnostics)
	if what.ValueString() == "invalid" && !r.failuresDisabled() {
		response.Diagnostics.Append(response.Plan.SetAttribute(ctx, path.Root("text"), "not what was asked for")...)
	}
}

// change creates or updates an object.
func (r *trouble) change(ctx context.Context, attribute string, plan tfsdk.Plan, state *tfsdk.State, diagnostics *diag.Diagnostics) {
	var model troubleModel
	diagnostics.Append(plan.Get(ctx, &model)...)
	what := model.OnCreate.ValueString()
	if attribute == "on_update" {
		what = model.OnUpdate.ValueString()
	}
	if diagnostics.HasError() || r.failBefore(attribute, what, diagnostics) {
		return
	}
	if model.ID.IsUnknown() {
		model.ID = types.StringValue(newID())
	}
	if !r.put(model.ID, model.Text, diagnostics) {
		return
	}
	if attribute == "on_create" {
		r.world.count("create", model.ID)
	}
	if what == "invalid" && !r.failuresDisabled() {
		model.Text = types.StringValue("not what was planned")
	}
	diagnostics.Append(state.Set(ctx, &model)...)
	r.failAfter(ctx, attribute, what, diagnostics)
}

func (r *trouble) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	r.change(ctx, "on_create", request.Plan, &response.State, &response.Diagnostics)
}

func (r *trouble) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	r.change(ctx, "on_update", request.Plan, &response.State, &response.Diagnostics)
}

func (r *trouble) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	var model troubleModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if response.Diagnostics.HasError() || r.failBefore("on_read", model.OnRead.ValueString(), &response.Diagnostics) {
		return
	}
	text, exists := r.find(ctx, model.ID, model.Text, response)
	if exists && text != model.Text.ValueString() {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("text"), text)...)
	}
	r.failAfter(ctx, "on_read", model.OnRead.ValueString(), &response.Diagnostics)
}

func (r *trouble) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var model troubleModel
	response.Diagnostics.Append(request.State.Get(ctx, &model)...)
	if response.Diagnostics.HasError() || r.failBefore("on_delete", model.OnDelete.ValueString(), &response.Diagnostics) {
		return
	}
	r.existing.Delete(ctx, request, response)
	if !response.Diagnostics.HasError() {
		r.failAfter(ctx, "on_delete", model.OnDelete.ValueString(), &response.Diagnostics)
	}
}

// ImportState finds an object by its id.
func (r *trouble) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), request, response)
}

// retained is the memory that `swell` has allocated.
var retained []byte

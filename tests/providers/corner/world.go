package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// world is where objects exist: a folder with a file for each, which holds its text.
type world struct{ folder string }

// configured is the part that all resources share.
type configured struct{ world *world }

func (c *configured) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if world, ok := request.ProviderData.(*world); ok {
		c.world = world
	}
}

// existing is the part that resources share whose objects are in the world.
type existing struct{ configured }

// identifier is the attribute `id`, which the provider draws, and which stays.
func identifier() schema.StringAttribute {
	return schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

// put writes an object, and tells whether it could.
func (e *existing) put(id, text types.String, diagnostics *diag.Diagnostics) bool {
	err := e.world.write(id.ValueString(), text.ValueString())
	if err != nil {
		diagnostics.AddError("The object cannot be written", err.Error())
	}
	return err == nil
}

// find tells the text of an object, and whether it is there; one that is gone leaves the state. Without a folder each
// object is there, with the text that it had before.
func (e *existing) find(ctx context.Context, id, before types.String, response *resource.ReadResponse) (string, bool) {
	text, exists, err := e.world.read(id.ValueString(), before.ValueString())
	switch {
	case err != nil:
		response.Diagnostics.AddError("The object cannot be read", err.Error())
	case !exists:
		response.State.RemoveResource(ctx)
	}
	return text, exists
}

func (e *existing) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	var id types.String
	response.Diagnostics.Append(request.State.GetAttribute(ctx, path.Root("id"), &id)...)
	if err := e.world.remove(id.ValueString()); err != nil {
		response.Diagnostics.AddError("The object cannot be removed", err.Error())
	}
}

// draw makes an id.
func draw() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

func (w *world) path(id string) string { return filepath.Join(w.folder, filepath.Base(id)) }

func (w *world) write(id, text string) error {
	if w == nil || w.folder == "" {
		return nil
	}
	return os.WriteFile(w.path(id), []byte(text), 0o600)
}

// read tells the text of an object, and whether it is there.
func (w *world) read(id, otherwise string) (string, bool, error) {
	if w == nil || w.folder == "" {
		return otherwise, true, nil
	}
	content, err := os.ReadFile(w.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(content), err == nil, err
}

func (w *world) remove(id string) error {
	if w == nil || w.folder == "" {
		return nil
	}
	if err := os.Remove(w.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

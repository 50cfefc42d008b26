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

// world stores the objects: a directory with a file for each, which contains its text.
type world struct{ directory string }

// configured is embedded in all resources.
type configured struct{ world *world }

func (c *configured) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if world, ok := request.ProviderData.(*world); ok {
		c.world = world
	}
}

// existing is embedded in resources whose objects are in the world.
type existing struct{ configured }

// identifier is the attribute `id`, which the provider generates once.
func identifier() schema.StringAttribute {
	return schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

// put writes an object, and reports whether it succeeded.
func (e *existing) put(id, text types.String, diagnostics *diag.Diagnostics) bool {
	err := e.world.write(id.ValueString(), text.ValueString())
	if err != nil {
		diagnostics.AddError("The object cannot be written", err.Error())
	}
	return err == nil
}

// find returns the text of an object, and whether it exists; a missing object is removed from the state. Without a
// directory, every object exists with its previous text.
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
		return
	}
	e.world.count("destroy", id)
}

// newID returns a random id.
func newID() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

func (w *world) path(id string) string { return filepath.Join(w.directory, filepath.Base(id)) }

func (w *world) write(id, text string) error {
	if w == nil || w.directory == "" {
		return nil
	}
	return os.WriteFile(w.path(id), []byte(text), 0o600)
}

// read returns the text of an object, and whether it exists.
func (w *world) read(id, fallback string) (string, bool, error) {
	if w == nil || w.directory == "" {
		return fallback, true, nil
	}
	content, err := os.ReadFile(w.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(content), err == nil, err
}

// count appends a call and its object to the file `calls`, if the directory has one.
func (w *world) count(call string, id types.String) {
	if w == nil || w.directory == "" {
		return
	}
	file, err := os.OpenFile(w.path("calls"), os.O_APPEND|os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		_, err = file.WriteString(call + " " + id.ValueString() + "\n")
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		panic(err)
	}
}

// crash ends the process if the directory has the file `crash-WHEN`.
func (w *world) crash(when string) {
	if _, err := os.Stat(w.path("crash-" + when)); w.directory != "" && err == nil {
		os.Exit(3)
	}
}

func (w *world) remove(id string) error {
	if w == nil || w.directory == "" {
		return nil
	}
	if err := os.Remove(w.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

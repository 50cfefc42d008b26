package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/resource"
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

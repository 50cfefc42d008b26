package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// world is where objects exist: a folder with a file for each, which holds its text.
type world struct{ folder string }

// draw makes an id.
func draw() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

func (w *world) path(id string) string { return filepath.Join(w.folder, filepath.Base(id)) }

func (w *world) write(id, text string) error {
	if w.folder == "" {
		return nil
	}
	return os.WriteFile(w.path(id), []byte(text), 0o600)
}

// read tells the text of an object, and whether it is there.
func (w *world) read(id, otherwise string) (string, bool, error) {
	if w.folder == "" {
		return otherwise, true, nil
	}
	content, err := os.ReadFile(w.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(content), err == nil, err
}

func (w *world) remove(id string) error {
	if w.folder == "" {
		return nil
	}
	if err := os.Remove(w.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// peaceful tells whether a test has put an end to all trouble: the file `peace` is in its folder.
func (w *world) peaceful() bool {
	if w.folder == "" {
		return false
	}
	_, err := os.Stat(w.path("peace"))
	return err == nil
}

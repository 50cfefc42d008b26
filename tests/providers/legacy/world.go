package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// world stores the objects: a directory with a file for each, which contains its text.
type world struct{ directory string }

// newID returns a random id.
func newID() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

func (w *world) path(id string) string { return filepath.Join(w.directory, filepath.Base(id)) }

func (w *world) write(id, text string) error {
	if w.directory == "" {
		return nil
	}
	return os.WriteFile(w.path(id), []byte(text), 0o600)
}

// read returns the text of an object, and whether it exists.
func (w *world) read(id, fallback string) (string, bool, error) {
	if w.directory == "" {
		return fallback, true, nil
	}
	content, err := os.ReadFile(w.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(content), err == nil, err
}

func (w *world) remove(id string) error {
	if w.directory == "" {
		return nil
	}
	if err := os.Remove(w.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// failuresDisabled reports whether the test has disabled all failures: the file `peace` is in the directory.
func (w *world) failuresDisabled() bool {
	if w.directory == "" {
		return false
	}
	_, err := os.Stat(w.path("peace"))
	return err == nil
}

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// store is the directory of the objects, in the directory of the configuration, where a provider runs.
type store string

const objects store = "objects"

// naming is held while an object gets a name that no other has.
var naming sync.Mutex

func (s store) file(kind, id string) string {
	return filepath.Join(string(s), kind, id+".json")
}

func (s store) exists(kind, id string) bool {
	_, err := os.Stat(s.file(kind, id))
	return err == nil
}

// read returns null if the object does not exist.
func (s store) read(kind, id string, t cty.Type) (cty.Value, error) {
	data, err := os.ReadFile(s.file(kind, id))
	if errors.Is(err, fs.ErrNotExist) {
		return cty.NullVal(t), nil
	} else if err != nil {
		return cty.NullVal(t), err
	}
	return ctyjson.Unmarshal(data, t)
}

func (s store) write(kind, id string, value cty.Value, t cty.Type) error {
	data, err := ctyjson.Marshal(value, t)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.file(kind, id)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(s.file(kind, id), append(data, '\n'), 0o644)
	}
	return err
}

func (s store) remove(kind, id string) error {
	err := os.Remove(s.file(kind, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// create decides what is unknown, with an ID of its own, and writes the object.
func (s store) create(kind string, planned cty.Value, t cty.Type) (cty.Value, error) {
	naming.Lock()
	defer naming.Unlock()
	_, short, _ := strings.Cut(kind, "_")
	first := short + "-" + digest(kind, known(planned))[:8]
	id := first
	for number := 2; s.exists(kind, id); number++ {
		id = fmt.Sprintf("%s-%d", first, number)
	}
	created := decided(planned, id)
	return created, s.write(kind, id, created, t)
}

func (s store) update(kind, id string, planned cty.Value, t cty.Type) (cty.Value, error) {
	updated := decided(planned, id)
	return updated, s.write(kind, id, updated, t)
}

// known is an object as JSON, with null in place of what is unknown.
func known(value cty.Value) string {
	value, err := cty.Transform(value, func(_ cty.Path, part cty.Value) (cty.Value, error) {
		if part.IsKnown() {
			return part, nil
		}
		return cty.NullVal(part.Type()), nil
	})
	must(err)
	data, err := ctyjson.Marshal(value, value.Type())
	must(err)
	return string(data)
}

// decided has a value for each unknown part: the ID, and others that follow from it and from what is known.
func decided(planned cty.Value, id string) cty.Value {
	basis := known(planned)
	fields := planned.AsValueMap()
	for name, field := range fields {
		if name == "id" && !field.IsKnown() {
			fields[name] = cty.StringVal(id)
			continue
		}
		value, err := cty.Transform(field, func(path cty.Path, part cty.Value) (cty.Value, error) {
			if part.IsKnown() {
				return part, nil
			}
			return invented(part.Type(), name, id, digest(name, basis)), nil
		})
		must(err)
		fields[name] = value
	}
	return cty.ObjectVal(fields)
}

func invented(t cty.Type, name, id, hash string) cty.Value {
	switch {
	case t == cty.String:
		return cty.StringVal(name + "/" + id + "/" + hash[:6])
	case t == cty.Number:
		bytes, err := hex.DecodeString(hash[:8])
		must(err)
		return cty.NumberUIntVal(uint64(binary.BigEndian.Uint32(bytes) % 1000))
	case t == cty.Bool:
		return cty.True
	case t.IsListType():
		return cty.ListVal([]cty.Value{invented(t.ElementType(), name, id, hash)})
	case t.IsSetType():
		return cty.SetVal([]cty.Value{invented(t.ElementType(), name, id, hash)})
	case t.IsMapType():
		return cty.MapVal(map[string]cty.Value{"made": invented(t.ElementType(), name, id, hash)})
	case t.IsObjectType():
		fields := map[string]cty.Value{}
		for field, inner := range t.AttributeTypes() {
			fields[field] = invented(inner, field, id, hash)
		}
		return cty.ObjectVal(fields)
	}
	return cty.NullVal(t)
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

package main

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

//go:embed schema.json
var schemaFile []byte

type schema struct {
	Provider  block
	Resources map[string]block
	Data      map[string]block
	// Sessions, which have a token and nothing else.
	Ephemerals map[string]block
}

type block struct {
	Attributes map[string]attribute
	Blocks     map[string]nestedBlock
	// Of a data source: the type whose object it finds by `id`.
	Finds string
}

type nestedBlock struct {
	block
	Nesting  string
	Min, Max int64
}

type attribute struct {
	// As in JSON schemas of Terraform. With Nested, its nesting mode.
	Type   json.RawMessage
	Nested map[string]attribute
	// Words: required, optional, computed, sensitive, write_only; replaces: a change needs another object; renewed: each
	// update gives it another value.
	Is string
	// The value that it has if none is set.
	Default json.RawMessage
	// The attribute of the provider configuration that it is taken from if none is set.
	From string
}

func readSchema() (*schema, error) {
	read := &schema{}
	return read, json.Unmarshal(schemaFile, read)
}

func (a attribute) is(word string) bool {
	return slices.Contains(strings.Fields(a.Is), word)
}

func (a attribute) mode() string {
	var mode string
	must(json.Unmarshal(a.Type, &mode))
	return mode
}

func (a attribute) cty() cty.Type {
	if a.Nested != nil {
		return collection(a.mode(), cty.Object(ctyTypes(a.Nested)))
	}
	result, err := ctyjson.UnmarshalType(a.Type)
	must(err)
	return result
}

func (a attribute) initial() cty.Value {
	value, err := ctyjson.Unmarshal(a.Default, a.cty())
	must(err)
	return value
}

func ctyTypes(attributes map[string]attribute) map[string]cty.Type {
	types := map[string]cty.Type{}
	for name, one := range attributes {
		types[name] = one.cty()
	}
	return types
}

func (b block) cty() cty.Type {
	types := ctyTypes(b.Attributes)
	for name, one := range b.Blocks {
		types[name] = collection(one.Nesting, one.cty())
	}
	return cty.Object(types)
}

func collection(mode string, item cty.Type) cty.Type {
	switch mode {
	case "list":
		return cty.List(item)
	case "set":
		return cty.Set(item)
	case "map":
		return cty.Map(item)
	}
	return item
}

func (b block) protocol() *tfprotov6.SchemaBlock {
	modes := map[string]tfprotov6.SchemaNestedBlockNestingMode{
		"list":   tfprotov6.SchemaNestedBlockNestingModeList,
		"set":    tfprotov6.SchemaNestedBlockNestingModeSet,
		"map":    tfprotov6.SchemaNestedBlockNestingModeMap,
		"single": tfprotov6.SchemaNestedBlockNestingModeSingle,
		"group":  tfprotov6.SchemaNestedBlockNestingModeGroup,
	}
	result := &tfprotov6.SchemaBlock{Attributes: protocolAttributes(b.Attributes)}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		one := b.Blocks[name]
		result.BlockTypes = append(result.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Block: one.protocol(), Nesting: modes[one.Nesting], MinItems: one.Min, MaxItems: one.Max,
		})
	}
	return result
}

func protocolAttributes(attributes map[string]attribute) (result []*tfprotov6.SchemaAttribute) {
	modes := map[string]tfprotov6.SchemaObjectNestingMode{
		"list":   tfprotov6.SchemaObjectNestingModeList,
		"set":    tfprotov6.SchemaObjectNestingModeSet,
		"map":    tfprotov6.SchemaObjectNestingModeMap,
		"single": tfprotov6.SchemaObjectNestingModeSingle,
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		one := &tfprotov6.SchemaAttribute{
			Name: name, Required: a.is("required"), Optional: a.is("optional"), Computed: a.is("computed"),
			Sensitive: a.is("sensitive"), WriteOnly: a.is("write_only"),
		}
		if a.Nested != nil {
			one.NestedType = &tfprotov6.SchemaObject{Attributes: protocolAttributes(a.Nested), Nesting: modes[a.mode()]}
		} else {
			parsed, err := tftypes.ParseJSONType(a.Type) //nolint:staticcheck // the only parser there is
			must(err)
			one.Type = parsed
		}
		result = append(result, one)
	}
	return result
}

// must ends the program: the schema is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

package main

import (
	"encoding/json"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/vendored/opentofu/configs/configschema"
	"github.com/zclconf/go-cty/cty"
)

// Block is a schema as the vectors have it.
type Block struct {
	Attributes map[string]*Attribute `json:"attributes"`
	Blocks     map[string]*Nested    `json:"blocks"`
}

// Attribute has either a type or nested attributes.
type Attribute struct {
	Type   json.RawMessage `json:"type,omitempty"`
	Nested *Nested         `json:"nested,omitempty"`
	// Flags has a letter for each of required, optional, computed, sensitive and write-only.
	Flags string `json:"flags"`

	ty cty.Type
}

// Nested is a nested block, or the nested attributes of an attribute.
type Nested struct {
	Nesting string `json:"nesting"`
	Block   *Block `json:"block"`
}

var nestings = map[string]configschema.NestingMode{
	"single": configschema.NestingSingle,
	"group":  configschema.NestingGroup,
	"list":   configschema.NestingList,
	"set":    configschema.NestingSet,
	"map":    configschema.NestingMap,
}

func (b *Block) schema() *configschema.Block {
	block := &configschema.Block{
		Attributes: attributes(b.Attributes),
		BlockTypes: map[string]*configschema.NestedBlock{},
	}
	for name, nested := range b.Blocks {
		block.BlockTypes[name] = &configschema.NestedBlock{
			Block:   *nested.Block.schema(),
			Nesting: nestings[nested.Nesting],
		}
	}
	return block
}

func attributes(from map[string]*Attribute) map[string]*configschema.Attribute {
	to := map[string]*configschema.Attribute{}
	for name, attribute := range from {
		to[name] = attribute.schema()
	}
	return to
}

func (a *Attribute) schema() *configschema.Attribute {
	attribute := &configschema.Attribute{
		Required:  a.has('r'),
		Optional:  a.has('o'),
		Computed:  a.has('c'),
		Sensitive: a.has('s'),
		WriteOnly: a.has('w'),
	}
	if a.Nested != nil {
		attribute.NestedType = &configschema.Object{
			Attributes: attributes(a.Nested.Block.Attributes),
			Nesting:    nestings[a.Nested.Nesting],
		}
	} else {
		attribute.Type = a.ty
	}
	return attribute
}

func (a *Attribute) has(flag rune) bool {
	for _, letter := range a.Flags {
		if letter == flag {
			return true
		}
	}
	return false
}

// block is a random schema, with blocks in it as deep as asked.
func (s *source) block(depth int, dynamic bool) *Block {
	block := &Block{Attributes: s.attributes(depth, dynamic), Blocks: map[string]*Nested{}}
	for range s.Intn(3) {
		if depth == 0 {
			break
		}
		nesting := s.pick("single", "group", "list", "list", "set", "set", "map")
		inner := s.block(depth-1, dynamic && nesting != "set")
		block.Blocks[s.pick("w", "x", "y", "z")] = &Nested{Nesting: nesting, Block: inner}
	}
	return block
}

func (s *source) attributes(depth int, dynamic bool) map[string]*Attribute {
	attributes := map[string]*Attribute{}
	for range 1 + s.Intn(3) {
		attribute := &Attribute{Flags: s.pick("r", "o", "o", "oc", "oc", "c", "os", "ow", "ocs")}
		if depth > 0 && s.one(3) {
			nesting := s.pick("single", "list", "set", "map")
			// Elements of one collection have one type, so nothing in them may be dynamic.
			inner := &Block{Attributes: s.attributes(depth-1, dynamic && nesting == "single")}
			attribute.Nested = &Nested{Nesting: nesting, Block: inner}
		} else {
			attribute.ty = s.attributeType(dynamic)
			attribute.Type = typeJSON(attribute.ty)
		}
		attributes[s.pick("a", "b", "c", "d")] = attribute
	}
	return attributes
}

func (s *source) attributeType(dynamic bool) cty.Type {
	switch {
	case dynamic && s.one(8):
		return cty.DynamicPseudoType
	case s.one(4):
		return s.concrete(s.declaredType(1))
	default:
		return s.primitive()
	}
}

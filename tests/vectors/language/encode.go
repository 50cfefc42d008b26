package main

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"

	"github.com/opentofu/opentofu/internal/lang/marks"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Value is a value with its type.
type Value struct {
	Type json.RawMessage `json:"t"`
	Data any             `json:"v"`
}

func encode(value cty.Value) *Value {
	ty, err := ctyjson.MarshalType(value.Type())
	if err != nil {
		panic(err)
	}
	// An empty tuple that comes from a unification has no list of types.
	return &Value{bytes.ReplaceAll(ty, []byte(`["tuple",null]`), []byte(`["tuple",[]]`)), data(value)}
}

// data has null, strings for strings and numbers, bools, arrays, objects as {"o": ...}, unknown places as {"?": ...} with
// what is known about them, and marked places as {"m": [...], "v": ...}.
func data(value cty.Value) any {
	if value.IsMarked() {
		plain, own := value.Unmark()
		names := []string{}
		for mark := range own {
			switch mark {
			case marks.Sensitive:
				names = append(names, "sensitive")
			case marks.Ephemeral:
				names = append(names, "ephemeral")
			default:
				names = append(names, "other")
			}
		}
		sort.Strings(names)
		return map[string]any{"m": names, "v": data(plain)}
	}
	if !value.IsKnown() {
		return map[string]any{"?": bounds(value)}
	}
	if value.IsNull() {
		return nil
	}
	ty := value.Type()
	switch {
	case ty == cty.String:
		return value.AsString()
	case ty == cty.Number:
		return value.AsBigFloat().Text('f', -1)
	case ty == cty.Bool:
		return value.True()
	case ty.IsListType() || ty.IsSetType() || ty.IsTupleType():
		items := []any{}
		for it := value.ElementIterator(); it.Next(); {
			_, item := it.Element()
			items = append(items, data(item))
		}
		return items
	default:
		entries := map[string]any{}
		for it := value.ElementIterator(); it.Next(); {
			key, item := it.Element()
			entries[key.AsString()] = data(item)
		}
		return map[string]any{"o": entries}
	}
}

func bounds(value cty.Value) map[string]any {
	known := map[string]any{}
	around := value.Range()
	if value.Type() == cty.DynamicPseudoType {
		return known
	}
	if around.DefinitelyNotNull() {
		known["notNull"] = true
	}
	switch ty := value.Type(); {
	case ty == cty.String:
		if prefix := around.StringPrefix(); prefix != "" {
			known["prefix"] = prefix
		}
	case ty == cty.Number:
		if lower, inclusive := around.NumberLowerBound(); lower.IsKnown() && !lower.RawEquals(cty.NegativeInfinity) {
			known["lower"] = []any{lower.AsBigFloat().Text('f', -1), inclusive}
		}
		if upper, inclusive := around.NumberUpperBound(); upper.IsKnown() && !upper.RawEquals(cty.PositiveInfinity) {
			known["upper"] = []any{upper.AsBigFloat().Text('f', -1), inclusive}
		}
	case ty.IsCollectionType():
		if lower := around.LengthLowerBound(); lower != 0 {
			known["min"] = lower
		}
		if upper := around.LengthUpperBound(); upper != math.MaxInt {
			known["max"] = upper
		}
	}
	return known
}

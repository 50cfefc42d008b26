package main

import (
	"math"
	"math/rand"
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// source makes random things.
type source struct {
	*rand.Rand
}

func (s *source) one(in int) bool {
	return s.Intn(in) == 0
}

func (s *source) pick(from ...string) string {
	return from[s.Intn(len(from))]
}

func (s *source) primitive() cty.Type {
	return []cty.Type{cty.String, cty.String, cty.Number, cty.Bool}[s.Intn(4)]
}

// declaredType is a type as a schema may have it, with dynamic places.
func (s *source) declaredType(depth int) cty.Type {
	if depth == 0 || s.one(3) {
		if s.one(6) {
			return cty.DynamicPseudoType
		}
		return s.primitive()
	}
	switch s.Intn(5) {
	case 0:
		return cty.List(s.declaredType(depth - 1))
	case 1:
		return cty.Set(s.concrete(s.declaredType(depth - 1)))
	case 2:
		return cty.Map(s.declaredType(depth - 1))
	case 3:
		types := make([]cty.Type, s.Intn(4))
		for place := range types {
			types[place] = s.declaredType(depth - 1)
		}
		return cty.Tuple(types)
	default:
		types := map[string]cty.Type{}
		for range s.Intn(4) {
			types[s.pick("a", "b", "c", "d<", "é")] = s.declaredType(depth - 1)
		}
		return cty.Object(types)
	}
}

// concrete is a type without dynamic places that conforms to the declared one.
func (s *source) concrete(declared cty.Type) cty.Type {
	switch {
	case declared == cty.DynamicPseudoType:
		return s.concrete(s.declaredType(1))
	case declared.IsListType():
		return cty.List(s.concrete(declared.ElementType()))
	case declared.IsSetType():
		return cty.Set(s.concrete(declared.ElementType()))
	case declared.IsMapType():
		return cty.Map(s.concrete(declared.ElementType()))
	case declared.IsTupleType():
		types := []cty.Type{}
		for _, ty := range declared.TupleElementTypes() {
			types = append(types, s.concrete(ty))
		}
		return cty.Tuple(types)
	case declared.IsObjectType():
		types := map[string]cty.Type{}
		for _, name := range sorted(declared.AttributeTypes()) {
			types[name] = s.concrete(declared.AttributeType(name))
		}
		return cty.Object(types)
	default:
		return declared
	}
}

// value is of a type without dynamic places. Unknown places come with the given chance in a hundred.
func (s *source) value(ty cty.Type, unknown int) cty.Value {
	switch {
	case s.Intn(100) < unknown:
		return s.unknown(ty)
	case s.one(10):
		return cty.NullVal(ty)
	case ty == cty.String:
		return cty.StringVal(s.text())
	case ty == cty.Number:
		return s.number()
	case ty == cty.Bool:
		return cty.BoolVal(s.one(2))
	}
	switch {
	case ty.IsTupleType():
		items := []cty.Value{}
		for _, ty := range ty.TupleElementTypes() {
			items = append(items, s.value(ty, unknown))
		}
		return cty.TupleVal(items)
	case ty.IsObjectType():
		entries := map[string]cty.Value{}
		for _, name := range sorted(ty.AttributeTypes()) {
			entries[name] = s.value(ty.AttributeType(name), unknown)
		}
		return cty.ObjectVal(entries)
	}
	items := make([]cty.Value, s.Intn(4))
	for place := range items {
		items[place] = s.value(ty.ElementType(), unknown)
	}
	switch {
	case ty.IsListType():
		return list(items, ty.ElementType())
	case ty.IsSetType():
		return set(items, ty.ElementType())
	default:
		entries := map[string]cty.Value{}
		for place, item := range items {
			entries[s.pick("k", "l", "cafe\u0301")+strconv.Itoa(place%2)] = item
		}
		return mapOf(entries, ty.ElementType())
	}
}

func (s *source) unknown(ty cty.Type) cty.Value {
	value := cty.UnknownVal(ty)
	if !s.one(3) {
		return value
	}
	refine := value.Refine().NotNull()
	switch {
	case ty == cty.String && s.one(2):
		refine = refine.StringPrefix("ab-")
	case ty == cty.Number && s.one(2):
		refine = refine.NumberRangeLowerBound(cty.NumberIntVal(-3), s.one(2)).NumberRangeUpperBound(cty.NumberFloatVal(9.5), s.one(2))
	case ty.IsCollectionType() && s.one(2):
		refine = refine.CollectionLengthLowerBound(1).CollectionLengthUpperBound(5)
	}
	return refine.NewValue()
}

func (s *source) text() string {
	return s.pick("", "a", "b", "a", "b", "true", "1", "x y", "<a href=\"&\">", "line\nbreak\t\\", "\u0001\u007f", "é", "e\u0301",
		"\u1e9b\u0323", "日本", "\u2028", "😀", "longer than the thirty-one bytes that a short string may have")
}

func (s *source) number() cty.Value {
	switch s.Intn(6) {
	case 0:
		return cty.NumberIntVal(int64(s.Intn(3)))
	case 1:
		shift := s.Intn(64)
		return cty.NumberIntVal(int64(s.Uint64()>>shift) * int64(1-2*s.Intn(2)))
	case 2:
		return cty.NumberFloatVal(float64(s.Intn(2000)-1000) / 8)
	case 3:
		return cty.NumberFloatVal((s.Float64() - 0.5) * math.Pow(10, float64(s.Intn(14)-6)))
	default:
		return cty.MustParseNumberVal(s.pick("0.1", "-0.3", "1.5", "18446744073709551615", "9223372036854775808", "1e30", "-1e-9",
			"3.14159265358979323846264338327950288419716939937510582097494459", "12345678901", "12345678902", "1e20", "0.00001234",
			"100000000000000000000000000000000000000001", "9223372036854775807", "-9223372036854775808", "1234567.8"))
	}
}

func list(items []cty.Value, ty cty.Type) cty.Value {
	if len(items) == 0 {
		return cty.ListValEmpty(ty)
	}
	return cty.ListVal(items)
}

func set(items []cty.Value, ty cty.Type) cty.Value {
	if len(items) == 0 {
		return cty.SetValEmpty(ty)
	}
	return cty.SetVal(items)
}

func mapOf(entries map[string]cty.Value, ty cty.Type) cty.Value {
	if len(entries) == 0 {
		return cty.MapValEmpty(ty)
	}
	return cty.MapVal(entries)
}

package main

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
)

// source is where random choices come from.
type source struct{ *rand.Rand }

// one is true once in n times.
func (s *source) one(n int) bool { return s.Intn(n) == 0 }

func pick[T any](s *source, of []T) T { return of[s.Intn(len(of))] }

func sorted[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }

// The generators of values.

var words = []string{"alpha", "beta", "gamma", "", "delta epsilon", "Ünïcode", "e\u0301", "line\nline", "a \"quoted\" one", "0", "true"}

func text(s *source) any { return pick(s, words) }

func word(s *source) any { return pick(s, words[:3]) }

func boolean(s *source) any { return s.one(2) }

func among[T any](of ...T) func(*source) any {
	return func(s *source) any { return pick(s, of) }
}

func between(least, most int) func(*source) any {
	return func(s *source) any { return least + s.Intn(most-least+1) }
}

func numbers(s *source) any {
	return pick(s, []any{
		0, 1, -5, 300, json.Number("0.1"), json.Number("0.5"), json.Number("-0.000001"), json.Number("9223372036854775807"),
		// Numbers in manifests have 64 bits. Longer ones are written as strings.
		"1e30", "123456789012345678901234567890", "18446744073709551616", "3.14159265358979323846264338327950288",
	})
}

func list(of func(*source) any, most int) func(*source) any {
	return func(s *source) any {
		all := []any{}
		for range s.Intn(most + 1) {
			all = append(all, of(s))
		}
		return all
	}
}

// set has no equal elements.
func set(of func(*source) any, most int) func(*source) any {
	return func(s *source) any {
		all := []any{}
		seen := map[string]bool{}
		for range s.Intn(most + 1) {
			item := of(s)
			key, _ := json.Marshal(item)
			if !seen[string(key)] {
				seen[string(key)] = true
				all = append(all, item)
			}
		}
		return all
	}
}

func some(of func(*source) any, most int) func(*source) any {
	return func(s *source) any {
		for {
			if all := set(of, most)(s).([]any); len(all) > 0 {
				return all
			}
		}
	}
}

func dictionary(of func(*source) any) func(*source) any {
	return func(s *source) any {
		all := map[string]any{}
		for range s.Intn(4) {
			all[pick(s, []string{"k1", "k2", "k3", "with space"})] = of(s)
		}
		return all
	}
}

// object has the fields whose name ends with `!`, and some of the others.
func object(fields map[string]func(*source) any) func(*source) any {
	return func(s *source) any {
		all := map[string]any{}
		for _, name := range sorted(fields) {
			if last := len(name) - 1; name[last] == '!' {
				all[name[:last]] = fields[name](s)
			} else if s.one(2) {
				all[name] = fields[name](s)
			}
		}
		return all
	}
}

func anything(s *source) any {
	return pick(s, []any{"text", true, 5, []any{"a", 1}, map[string]any{"a": "b", "c": []any{true}}})
}

// keepers are arguments without an effect that make objects different.
func keepers(s *source) any { return map[string]any{"k": pick(s, words)} }

// Vectors makes random types, values and schemas from a seed and writes down what go-cty and OpenTofu's planning rules make
// of them, one JSON document a line. Purlin's own implementation is checked against these lines.
//
//	go run . -seed 1 | zstd -19 -o vectors.jsonl.zst -f
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/vendored/opentofu/configs/configschema"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/vendored/opentofu/plans/objchange"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

func main() {
	seed := flag.Int64("seed", 1, "where the random numbers begin")
	values := flag.Int("values", 3000, "how many values")
	schemas := flag.Int("schemas", 1500, "how many schemas")
	flag.Parse()
	random := &source{rand.New(rand.NewSource(*seed))}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for range *values {
		write(lines, valueVector(random))
	}
	for range *schemas {
		write(lines, schemaVector(random))
	}
	for range *values {
		write(lines, conversionVector(random))
	}
}

func write(lines *json.Encoder, vector any) {
	if err := lines.Encode(vector); err != nil {
		panic(err)
	}
}

// ValueVector is a value of a type in both encodings.
type ValueVector struct {
	Type    json.RawMessage `json:"type"`
	Msgpack string          `json:"msgpack"`
	// Plain is the encoding without refinements of unknown places, when there are any.
	Plain string `json:"plain,omitempty"`
	// JSON is there when the value is known.
	JSON string `json:"json,omitempty"`
}

// SchemaVector is a schema with what follows from it.
type SchemaVector struct {
	Schema *Block          `json:"schema"`
	Type   json.RawMessage `json:"implied"`
	Empty  string          `json:"empty"`
	Cases  []Case          `json:"cases"`
}

// ConversionVector is a literal, as JSON, that is given where a type is wanted.
type ConversionVector struct {
	Wanted  json.RawMessage `json:"wanted"`
	Literal json.RawMessage `json:"literal"`
	// Result is missing when the literal cannot be converted.
	Result string `json:"result,omitempty"`
}

// Case is a plan: what there was, what is wanted, what OpenTofu proposes, and the faults it finds in what a provider
// plans. All values are msgpack; faults are paths.
type Case struct {
	Prior    string `json:"prior"`
	Config   string `json:"config"`
	Proposed string `json:"proposed"`
	// Unread is what is planned for a data source; missing where the rules panic, as they do on unknown tuples.
	Unread  string   `json:"unread,omitempty"`
	Planned string   `json:"planned"`
	Faults  []string `json:"faults"`
}

func valueVector(random *source) ValueVector {
	declared := random.declaredType(3)
	value := random.value(random.concrete(declared), 10)
	vector := ValueVector{Type: typeJSON(declared), Msgpack: encode(value, declared)}
	if encoded := encode(plain(value), declared); encoded != vector.Msgpack {
		vector.Plain = encoded
	}
	if value.IsWhollyKnown() {
		encoded, err := ctyjson.Marshal(value, declared)
		check(err)
		vector.JSON = string(encoded)
	}
	return vector
}

func schemaVector(random *source) SchemaVector {
	block := random.block(2, true)
	schema := block.schema()
	implied := schema.ImpliedType()
	vector := SchemaVector{Schema: block, Type: typeJSON(implied), Empty: encode(schema.EmptyValue(), implied)}
	for len(vector.Cases) < 4 {
		if found := planCase(random, block, schema, implied); found != nil {
			vector.Cases = append(vector.Cases, *found)
		}
	}
	return vector
}

// longNumber matches what JSON parsers without big numbers would round.
var longNumber = regexp.MustCompile(`[0-9.]{15}`)

func conversionVector(random *source) ConversionVector {
	for {
		wanted := random.declaredType(2)
		given := wanted
		if random.one(3) {
			given = random.declaredType(2)
		}
		value := random.value(random.concrete(given), 0)
		literal, err := ctyjson.Marshal(value, value.Type())
		check(err)
		if openCollection(wanted) || longNumber.Match(literal) {
			continue
		}
		ty, err := ctyjson.ImpliedType(literal)
		check(err)
		value, err = ctyjson.Unmarshal(literal, ty)
		check(err)
		vector := ConversionVector{Wanted: typeJSON(wanted), Literal: literal}
		if converted, err := convert.Convert(value, wanted); err == nil {
			vector.Result = encode(converted, wanted)
		}
		return vector
	}
}

// openCollection tells whether elements of a collection have no type, so that their literals would need a common one. No
// provider may have such an attribute.
func openCollection(ty cty.Type) bool {
	switch {
	case ty.IsCollectionType():
		return ty.HasDynamicTypes()
	case ty.IsTupleType():
		return slices.ContainsFunc(ty.TupleElementTypes(), openCollection)
	case ty.IsObjectType():
		return slices.ContainsFunc(slices.Collect(maps.Values(ty.AttributeTypes())), openCollection)
	default:
		return false
	}
}

// planCase is nil where the rules have no answer: they panic on values that no configuration can have.
func planCase(random *source, block *Block, schema *configschema.Block, implied cty.Type) (found *Case) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintln(os.Stderr, "skipped:", problem)
			found = nil
		}
	}()
	prior := random.blockValue(block, cty.NilVal, 0)
	config := random.configured(block, random.blockValue(block, prior, 8))
	if random.one(8) {
		prior = cty.NullVal(implied)
	}
	proposed := objchange.ProposedNew(schema, prior, config)
	planned := proposed
	switch random.Intn(4) {
	case 0:
		planned = random.blockValue(block, proposed, 15)
	case 1:
		planned = random.blockValue(block, prior, 30)
	case 2:
		planned = random.completed(block, proposed, 4)
	}
	faults := []string{}
	for _, err := range objchange.AssertPlanValid(schema, prior, config, planned) {
		faults = append(faults, pathText(err))
	}
	sort.Strings(faults)
	return &Case{
		Prior:    encode(prior, implied),
		Config:   encode(config, implied),
		Proposed: encode(plain(proposed), implied),
		Unread:   unread(schema, config, implied),
		Planned:  encode(planned, implied),
		Faults:   faults,
	}
}

func unread(schema *configschema.Block, config cty.Value, implied cty.Type) (encoded string) {
	defer func() {
		if recover() != nil {
			encoded = ""
		}
	}()
	return encode(plain(objchange.PlannedUnknownObject(schema, config)), implied)
}

// plain is the value without refinements of unknown places.
func plain(value cty.Value) cty.Value {
	stripped, err := cty.Transform(value, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			return cty.UnknownVal(v.Type()), nil
		}
		return v, nil
	})
	check(err)
	return stripped
}

// pathText leaves out elements of sets, which have no place.
func pathText(err error) string {
	pathError, ok := err.(cty.PathError)
	if !ok {
		return ""
	}
	var text strings.Builder
	for _, step := range pathError.Path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			text.WriteString("/" + step.Name)
		case cty.IndexStep:
			switch step.Key.Type() {
			case cty.String:
				text.WriteString("/" + step.Key.AsString())
			case cty.Number:
				index, _ := step.Key.AsBigFloat().Int64()
				text.WriteString("/" + strconv.FormatInt(index, 10))
			}
		}
	}
	return text.String()
}

func encode(value cty.Value, ty cty.Type) string {
	encoded, err := msgpack.Marshal(value, ty)
	check(err)
	return hex.EncodeToString(encoded)
}

func typeJSON(ty cty.Type) json.RawMessage {
	encoded, err := ctyjson.MarshalType(ty)
	check(err)
	return encoded
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

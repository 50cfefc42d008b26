package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// Operation is an expression over operands of random types, which are the variables op0, op1 and so on. The result is
// missing if it is an error.
type Operation struct {
	Source string `json:"e"`
	// Whether the expression is in JSON syntax.
	JSON     bool              `json:"json,omitempty"`
	Operands map[string]*Value `json:"a"`
	Result   *Value            `json:"r,omitempty"`
}

const operations = 15000

var operandName = regexp.MustCompile(`\bop\d+\b`)

func writeOperations(j *judge, lines *json.Encoder) {
	seen := map[string]bool{}
	for len(seen) < operations {
		shape := &shape{judge: j, operands: map[string]cty.Value{}}
		vector := Operation{JSON: j.chance(8), Operands: map[string]*Value{}}
		if vector.JSON {
			vector.Source = shape.json(2)
		} else {
			vector.Source = shape.any(2)
		}
		for _, name := range operandName.FindAllString(vector.Source, -1) {
			vector.Operands[name] = encode(shape.operands[name])
		}
		key, err := json.Marshal(vector)
		if err != nil {
			panic(err)
		}
		if !seen[string(key)] && len(key) < 1500 {
			seen[string(key)] = true
			shape.write(lines, vector)
		}
	}
}

func (s *shape) write(lines *json.Encoder, vector Operation) {
	// A panic outside of a function is a defect of upstream's, which nothing should reproduce.
	defer func() { _ = recover() }()
	evaluate := s.evaluate
	if vector.JSON {
		evaluate = s.evaluateJSON
	}
	first := evaluate(vector.Source, s.operands)
	// Upstream unifies the types of attributes in the random order of Go's maps, so some results are not always the same.
	for range 40 {
		again := evaluate(vector.Source, s.operands)
		if (again == nil) != (first == nil) || first != nil && !again.RawEquals(*first) {
			return
		}
	}
	if first != nil {
		vector.Result = encode(*first)
	}
	write(lines, vector)
}

func (j *judge) evaluateJSON(source string, variables map[string]cty.Value) *cty.Value {
	expression, diagnostics := hcljson.ParseExpression([]byte(source), "")
	if diagnostics.HasErrors() {
		return nil
	}
	result, diagnostics := expression.Value(&hcl.EvalContext{Variables: variables, Functions: j.functions})
	if diagnostics.HasErrors() {
		return nil
	}
	return &result
}

// shape is the source of an expression while it is made, with its operands.
type shape struct {
	*judge
	operands map[string]cty.Value
	// The names of the `for` expressions around.
	names []string
}

// operand is a variable with a random value of the type.
func (s *shape) operand(ty cty.Type) string {
	value := s.some(ty, false)
	if s.chance(2) {
		value = anyOf(s.judge, cty.DynamicVal, cty.NullVal(cty.DynamicPseudoType))
	}
	name := fmt.Sprintf("op%d", len(s.operands))
	s.operands[name] = value
	return name
}

// any is an operand of any type, or an expression.
func (s *shape) any(depth int) string {
	switch {
	case depth == 0 && len(s.names) > 0 && s.chance(40):
		return anyOf(s.judge, s.names...)
	case depth == 0:
		return s.operand(s.someType(2))
	case depth == 1 && s.chance(50):
		return s.any(0)
	}
	switch s.random.Intn(12) {
	case 0:
		return s.operator()
	case 1, 2:
		return s.conditional(depth)
	case 3, 4:
		return s.access(depth)
	case 5:
		return s.splat(depth)
	case 6, 7:
		return s.iteration(depth)
	case 8, 9:
		return s.template(depth)
	case 10:
		return s.constructor(depth)
	default:
		return s.functionCall(depth)
	}
}

func (s *shape) operator() string {
	ty := anyOf(s.judge, cty.Number, cty.Number, cty.Bool, s.someType(2))
	other := ty
	if ty.IsPrimitiveType() {
		other = anyOf(s.judge, ty, ty, ty, ty, cty.String)
	} else {
		other = s.similar(ty)
	}
	if s.chance(15) {
		return fmt.Sprintf("%s%s", s.one("-", "!"), s.operand(ty))
	}
	operators := []string{"==", "!="}
	switch ty {
	case cty.Number:
		operators = []string{"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!="}
	case cty.Bool:
		operators = []string{"&&", "||", "==", "!="}
	}
	return fmt.Sprintf("%s %s %s", s.operand(ty), s.one(operators...), s.operand(other))
}

func (s *shape) conditional(depth int) string {
	condition := s.operand(anyOf(s.judge, cty.Bool, cty.Bool, cty.Bool, cty.Bool, cty.String))
	if s.chance(30) {
		return fmt.Sprintf("%s ? %s : %s", condition, s.inner(depth), s.inner(depth))
	}
	ty := s.someType(3)
	return fmt.Sprintf("%s ? %s : %s", condition, s.operand(ty), s.operand(s.similar(ty)))
}

// inner is an operand or an expression in parentheses.
func (s *shape) inner(depth int) string {
	source := s.any(depth - 1)
	if strings.ContainsAny(source, " <") {
		return "(" + source + ")"
	}
	return source
}

func (s *shape) collection(depth int) string {
	if s.chance(20) {
		return s.inner(depth)
	}
	inner := s.someType(1)
	return s.operand(anyOf(s.judge, cty.List(inner), cty.Set(inner), cty.Map(inner), cty.Tuple([]cty.Type{inner, s.someType(1)}),
		cty.Object(s.attributes(1)), cty.List(cty.Object(s.attributes(1))), cty.Map(cty.Object(s.attributes(1))), cty.List(cty.List(inner))))
}

func (s *shape) step() string {
	return s.one(".a", ".b", ".name", "[0]", "[1]", "[\"a\"]", "[\"0\"]", ".0", "[-1]", "[0.5]", "[true]", "[null]")
}

func (s *shape) access(depth int) string {
	source := s.collection(depth)
	switch s.random.Intn(6) {
	case 0:
		return source + s.step()
	case 1:
		return source + s.step() + s.step()
	case 2:
		return fmt.Sprintf("try(%s%s, %s)", source, s.step(), s.any(0))
	case 3:
		return fmt.Sprintf("can(%s%s)", source, s.step())
	default:
		return fmt.Sprintf("%s[%s]", source, s.operand(anyOf(s.judge, cty.Number, cty.String, cty.String, cty.Bool)))
	}
}

func (s *shape) splat(depth int) string {
	step := func() string { return s.one(".a", ".name", "[0]", "[\"a\"]", "") }
	legacy := func() string { return s.one(".a", ".name", ".0", "") }
	source := s.collection(depth)
	switch s.random.Intn(7) {
	case 0:
		return source + ".*" + legacy()
	case 1:
		return source + ".*" + legacy() + "[0]"
	case 2:
		return source + "[*]" + step() + "[*]" + step()
	case 3:
		return source + "[*]" + step() + ".*" + legacy()
	case 4:
		return source + "[" + s.one("0", "\"a\"") + "][*]" + step()
	default:
		return source + "[*]" + step()
	}
}

func (s *shape) iteration(depth int) string {
	source := s.collection(depth)
	names := s.one("v", "k, v")
	outer := s.names
	s.names = append(slices.Clone(s.names), strings.Split(names, ", ")...)
	defer func() { s.names = outer }()
	name := func() string { return anyOf(s.judge, s.names...) }
	item := s.one(name(), name(), name()+s.step(), "["+name()+"]", "\"${"+name()+"}-x\"", s.inner(depth), "{x = "+name()+"}")
	condition := s.one("", "", "", " if "+name()+" != null", " if "+name()+" != \"a\"", " if "+s.operand(cty.Bool), " if "+name())
	if s.chance(50) {
		return fmt.Sprintf("[for %s in %s : %s%s]", names, source, item, condition)
	}
	key := s.one(name(), name(), "\"k${"+name()+"}\"", s.operand(cty.String), "jsonencode("+name()+")")
	return fmt.Sprintf("{for %s in %s : %s => %s%s%s}", names, source, key, item, s.one("", "..."), condition)
}

// template is a quoted template or a heredoc.
func (s *shape) template(depth int) string {
	if s.chance(50) {
		return "\"" + s.content(depth, quoted) + "\""
	}
	content := s.content(depth, func(text string) string { return text })
	return s.one("<<E\n", "<<-E\n", "<<-E\n") + s.one("", "  ") + content + "\n" + s.one("", "  ", "    ") + "E\n"
}

func (s *shape) content(depth int, text func(string) string) string {
	parts := []string{}
	for range 1 + s.random.Intn(3) {
		parts = append(parts, text(s.spaced()), s.directive(depth, text))
	}
	return strings.Join(append(parts, text(s.spaced())), "")
}

func (s *shape) directive(depth int, text func(string) string) string {
	left, right := s.one("{", "{", "{~"), s.one("}", "}", "~}")
	body := func() string {
		if depth > 0 && s.chance(40) {
			return s.content(depth-1, text)
		}
		return text(s.spaced())
	}
	value := func() string {
		if len(s.names) > 0 && s.chance(40) {
			return anyOf(s.judge, s.names...)
		}
		return s.operand(anyOf(s.judge, cty.String, cty.String, cty.Number, cty.Bool, s.someType(1)))
	}
	switch s.random.Intn(6) {
	case 0:
		source := "%" + left + " if " + s.operand(anyOf(s.judge, cty.Bool, cty.Bool, cty.Bool, cty.String)) + " " + right + body()
		if s.chance(50) {
			source += "%" + left + " else " + s.one("}", "~}") + body()
		}
		return source + "%" + s.one("{", "{~") + " endif " + right
	case 1:
		names := s.one("v", "k, v")
		header := "%" + left + " for " + names + " in " + s.collection(1) + " " + right
		outer := s.names
		s.names = append(slices.Clone(s.names), strings.Split(names, ", ")...)
		content := body() + "${" + anyOf(s.judge, s.names...) + "}" + body()
		s.names = outer
		return header + content + "%" + s.one("{", "{~") + " endfor " + right
	default:
		return "$" + left + value() + right
	}
}

func (s *shape) constructor(depth int) string {
	switch s.random.Intn(5) {
	case 0:
		return fmt.Sprintf("[%s, %s]", s.any(depth-1), s.any(depth-1))
	case 1:
		return fmt.Sprintf("{(%s) = %s}", s.operand(anyOf(s.judge, cty.String, cty.String, cty.Number, cty.Bool)), s.any(depth-1))
	case 2:
		return fmt.Sprintf("{(%s) = 1, (%s) = %s}", s.operand(cty.String), s.operand(cty.String), s.any(depth-1))
	case 3:
		return fmt.Sprintf("{a = %s, b = %s}%s", s.any(depth-1), s.any(depth-1), s.one("", ".a", "[\"b\"]", "["+s.operand(cty.String)+"]"))
	default:
		return fmt.Sprintf("[%s, %s][%s]", s.any(depth-1), s.any(depth-1), s.operand(cty.Number))
	}
}

func (s *shape) functionCall(depth int) string {
	name := anyOf(s.judge, s.functionNames()...)
	if name == "indent" {
		// Upstream takes all memory for a large number.
		return fmt.Sprintf("indent(2, %s)", s.operand(cty.String))
	}
	function := s.functions[name]
	parameters := function.Params()
	if rest := function.VarParam(); rest != nil {
		for range s.random.Intn(4) {
			parameters = append(slices.Clone(parameters), *rest)
		}
	}
	arguments := []string{}
	ty := s.someType(2)
	for _, parameter := range parameters {
		switch wanted := parameter.Type; {
		case s.chance(15):
			arguments = append(arguments, s.any(depth-1))
		case wanted == cty.DynamicPseudoType:
			arguments = append(arguments, s.operand(s.similar(ty)))
		case wanted.HasDynamicTypes() && wanted.IsMapType():
			arguments = append(arguments, s.operand(cty.Map(ty)))
		case wanted.HasDynamicTypes() && wanted.IsSetType():
			arguments = append(arguments, s.operand(cty.Set(ty)))
		case wanted.HasDynamicTypes():
			arguments = append(arguments, s.operand(cty.List(ty)))
		default:
			arguments = append(arguments, s.operand(wanted))
		}
	}
	expansion := ""
	if len(arguments) > 0 && s.chance(8) {
		expansion = "..."
	}
	return name + "(" + strings.Join(arguments, ", ") + expansion + ")"
}

func (j *judge) functionNames() []string {
	names := []string{}
	for name := range j.functions {
		if !strings.Contains(name, "::") && !slices.Contains(unpredictable, name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// json is an expression in JSON syntax, with templates in its strings and keys.
func (s *shape) json(depth int) string {
	if depth == 0 || s.chance(40) {
		content := s.content(1, func(text string) string { return text })
		text, err := json.Marshal(content)
		if err != nil {
			panic(err)
		}
		return s.one(string(text), string(text), string(text), "null", "true", s.digits(), "\"${"+s.operand(s.someType(2))+"}\"")
	}
	if s.chance(40) {
		return fmt.Sprintf("[%s, %s]", s.json(depth-1), s.json(depth-1))
	}
	key := s.one("a", "a", "${"+s.operand(cty.String)+"}", "k-${"+s.operand(cty.Number)+"}", "b")
	return fmt.Sprintf("{\"%s\": %s, \"b\": %s}", key, s.json(depth-1), s.json(depth-1))
}

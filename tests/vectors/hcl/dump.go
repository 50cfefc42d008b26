package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// A dump is the tree of a file as text: a node is its kind, its range, and what is in it.
type dump struct {
	strings.Builder
}

func place(r hcl.Range) string {
	return fmt.Sprintf("%d:%d@%d-%d:%d@%d", r.Start.Line, r.Start.Column, r.Start.Byte, r.End.Line, r.End.Column, r.End.Byte)
}

func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "\\u{%x}", c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func literal(v cty.Value) string {
	switch {
	case !v.IsKnown():
		return "invalid"
	case v.IsNull():
		return "null"
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type() == cty.Number:
		return number(v)
	default:
		return quote(v.AsString())
	}
}

// A number as its digits without zeros at the ends, and an exponent: 1.50 is 15e-1.
func number(v cty.Value) string {
	text := v.AsBigFloat().Text('e', -1)
	mantissa, exponent, _ := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	var power int
	power, _ = strconv.Atoi(exponent)
	power -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	power += len(digits) - len(trimmed)
	if trimmed == "" || trimmed == "-" {
		return "0e0"
	}
	return fmt.Sprintf("%se%d", trimmed, power)
}

func (d *dump) open(kind string, r hcl.Range) {
	d.WriteString("(" + kind + " " + place(r))
}

func (d *dump) word(text string) {
	d.WriteString(" " + text)
}

func (d *dump) close() {
	d.WriteString(")")
}

func (d *dump) expressions(all ...hclsyntax.Expression) {
	for _, expr := range all {
		d.WriteString(" ")
		d.expression(expr)
	}
}

func (d *dump) steps(steps hcl.Traversal) {
	for _, step := range steps {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			d.WriteString(" (root " + place(step.SrcRange) + " " + quote(step.Name) + ")")
		case hcl.TraverseAttr:
			d.WriteString(" (attribute " + place(step.SrcRange) + " " + quote(step.Name) + ")")
		case hcl.TraverseIndex:
			d.WriteString(" (index " + place(step.SrcRange) + " " + literal(step.Key) + ")")
		case hcl.TraverseSplat:
			d.WriteString(" (splat " + place(step.SrcRange) + ")")
		default:
			panic(fmt.Sprintf("%T", step))
		}
	}
}

var operators = map[*hclsyntax.Operation]string{
	hclsyntax.OpLogicalOr: "||", hclsyntax.OpLogicalAnd: "&&", hclsyntax.OpEqual: "==", hclsyntax.OpNotEqual: "!=",
	hclsyntax.OpGreaterThan: ">", hclsyntax.OpGreaterThanOrEqual: ">=", hclsyntax.OpLessThan: "<",
	hclsyntax.OpLessThanOrEqual: "<=", hclsyntax.OpAdd: "+", hclsyntax.OpSubtract: "-", hclsyntax.OpMultiply: "*",
	hclsyntax.OpDivide: "/", hclsyntax.OpModulo: "%", hclsyntax.OpNegate: "-", hclsyntax.OpLogicalNot: "!",
}

func (d *dump) expression(expr hclsyntax.Expression) {
	r := expr.Range()
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		d.open("literal", r)
		d.word(literal(e.Val))
	case *hclsyntax.ScopeTraversalExpr:
		d.open("traversal", r)
		d.steps(e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		d.open("relative", r)
		d.expressions(e.Source)
		d.steps(e.Traversal)
	case *hclsyntax.FunctionCallExpr:
		d.open("call", r)
		d.word(quote(e.Name))
		d.word(place(e.NameRange))
		d.word(place(e.OpenParenRange))
		d.word(place(e.CloseParenRange))
		d.word(fmt.Sprint(e.ExpandFinal))
		d.expressions(e.Args...)
	case *hclsyntax.ConditionalExpr:
		d.open("conditional", r)
		d.expressions(e.Condition, e.TrueResult, e.FalseResult)
	case *hclsyntax.BinaryOpExpr:
		d.open("binary", r)
		d.word(operators[e.Op])
		d.expressions(e.LHS, e.RHS)
	case *hclsyntax.UnaryOpExpr:
		d.open("unary", r)
		d.word(operators[e.Op])
		d.expressions(e.Val)
	case *hclsyntax.IndexExpr:
		d.open("index", r)
		d.word(place(e.BracketRange))
		d.expressions(e.Collection, e.Key)
	case *hclsyntax.SplatExpr:
		d.open("splat", r)
		d.word(place(e.MarkerRange))
		d.expressions(e.Source, e.Each)
	case *hclsyntax.AnonSymbolExpr:
		d.open("item", r)
	case *hclsyntax.TemplateExpr:
		d.open("template", r)
		d.expressions(e.Parts...)
	case *hclsyntax.TemplateWrapExpr:
		d.open("wrap", r)
		d.expressions(e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		d.open("join", r)
		d.expressions(e.Tuple)
	case *hclsyntax.TupleConsExpr:
		d.open("tuple", r)
		d.expressions(e.Exprs...)
	case *hclsyntax.ParenthesesExpr:
		d.open("parentheses", r)
		d.expressions(e.Expression)
	case *hclsyntax.ObjectConsExpr:
		d.open("object", r)
		for _, item := range e.Items {
			key := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
			d.word(fmt.Sprint(key.ForceNonLiteral))
			d.word(quote(hcl.ExprAsKeyword(key)))
			d.expressions(key.Wrapped, item.ValueExpr)
		}
	case *hclsyntax.ForExpr:
		d.open("for", r)
		d.word(place(e.OpenRange))
		d.word(place(e.CloseRange))
		d.word(quote(e.KeyVar))
		d.word(quote(e.ValVar))
		d.word(fmt.Sprint(e.Group))
		d.expressions(e.CollExpr)
		for _, optional := range []hclsyntax.Expression{e.KeyExpr, e.ValExpr, e.CondExpr} {
			if optional == nil {
				d.word("none")
			} else {
				d.expressions(optional)
			}
		}
	default:
		panic(fmt.Sprintf("%T", expr))
	}
	d.close()
}

func (d *dump) variables(expr hcl.Expression) {
	for _, traversal := range expr.Variables() {
		d.WriteString("\n(reference " + place(traversal.SourceRange()))
		d.steps(traversal)
		d.close()
	}
}

func (d *dump) body(body *hclsyntax.Body) {
	d.open("body", body.SrcRange)
	d.word(place(body.EndRange))
	attributes := make([]*hclsyntax.Attribute, 0)
	for _, attribute := range body.Attributes {
		attributes = append(attributes, attribute)
	}
	sortBy(attributes, func(a *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte })
	for _, attribute := range attributes {
		d.WriteString("\n")
		d.open("attribute", attribute.SrcRange)
		d.word(quote(attribute.Name))
		d.word(place(attribute.NameRange))
		d.word(place(attribute.EqualsRange))
		d.expressions(attribute.Expr)
		d.variables(attribute.Expr)
		d.close()
	}
	for _, block := range body.Blocks {
		d.WriteString("\n")
		d.open("block", block.TypeRange)
		d.word(quote(block.Type))
		for i, label := range block.Labels {
			d.word(quote(label))
			d.word(place(block.LabelRanges[i]))
		}
		d.word(place(block.OpenBraceRange))
		d.word(place(block.CloseBraceRange))
		d.WriteString(" ")
		d.body(block.Body)
		d.close()
	}
	d.close()
}

// The schema of bodies in JSON syntax: arguments, and blocks with no label, one and two.
var schema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "a"}, {Name: "b"}, {Name: "c", Required: false}},
	Blocks: []hcl.BlockHeaderSchema{
		{Type: "x"}, {Type: "y", LabelNames: []string{"name"}}, {Type: "z", LabelNames: []string{"type", "name"}}, {Type: "j"},
	},
}

func (d *dump) json(body hcl.Body, depth int) hcl.Diagnostics {
	content, diags := body.Content(schema)
	d.WriteString("(body " + fmt.Sprint(content.MissingItemRange.Start.Byte))
	d.attributes(content.Attributes)
	for _, block := range content.Blocks {
		d.WriteString("\n(block " + quote(block.Type) + " " + bytes(block.TypeRange))
		for i, label := range block.Labels {
			d.word(quote(label))
			d.word(bytes(block.LabelRanges[i]))
		}
		d.WriteString(" ")
		if block.Type == "j" {
			attributes, more := block.Body.JustAttributes()
			diags = append(diags, more...)
			d.attributes(attributes)
		} else {
			diags = append(diags, d.json(block.Body, depth+1)...)
		}
		d.close()
	}
	d.close()
	return diags
}

// The columns of JSON syntax count a tab as two, so only bytes are compared.
func bytes(r hcl.Range) string {
	return fmt.Sprintf("%d-%d", r.Start.Byte, r.End.Byte)
}

func (d *dump) attributes(all hcl.Attributes) {
	attributes := make([]*hcl.Attribute, 0)
	for _, attribute := range all {
		attributes = append(attributes, attribute)
	}
	sortBy(attributes, func(a *hcl.Attribute) int { return a.Range.Start.Byte })
	for _, attribute := range attributes {
		d.WriteString("\n(attribute " + bytes(attribute.Range) + " " + quote(attribute.Name) + " " + bytes(attribute.NameRange) + " ")
		d.jsonExpression(attribute.Expr)
		d.close()
	}
}

func (d *dump) jsonExpression(expr hcl.Expression) {
	d.WriteString("(" + bytes(expr.Range()))
	if items, diags := hcl.ExprMap(expr); !diags.HasErrors() && items != nil {
		d.word("object")
		for _, item := range items {
			d.WriteString(" ")
			d.jsonExpression(item.Key)
			d.WriteString(" ")
			d.jsonExpression(item.Value)
		}
	} else if list, diags := hcl.ExprList(expr); !diags.HasErrors() && list != nil {
		d.word("tuple")
		for _, item := range list {
			d.WriteString(" ")
			d.jsonExpression(item)
		}
	} else {
		value, _ := expr.Value(nil)
		d.word(literal(value))
		if traversal, diags := hcl.AbsTraversalForExpr(expr); !diags.HasErrors() {
			d.word(fmt.Sprint("traversal ", len(traversal)))
		}
		for _, traversal := range expr.Variables() {
			d.word(quote(traversal.RootName()))
			d.word(fmt.Sprint(len(traversal)))
		}
	}
	d.close()
}

func validText(src []byte) bool {
	return utf8.Valid(src)
}

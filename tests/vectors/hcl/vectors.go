package main

import (
	"fmt"
	"math/rand"
	"strings"
)

// The numbers of vectors that are made of each kind.
const (
	expressions = 1900
	templates   = 700
	bodies      = 1100
	traversals  = 250
	jsons       = 450
)

// The numbers are multiplied by `times`; for the vectors of the tests it is 1, and so is the seed.
func vectors(seed int64, times int) []vector {
	var all []vector
	seen := map[string]bool{}
	add := func(mode, text string) {
		if !seen[mode+text] {
			seen[mode+text] = true
			all = append(all, parse(mode, []byte(text)))
		}
	}
	for _, mode := range []string{"expression", "template", "body", "traversal", "partial", "json"} {
		for _, text := range picked[mode] {
			add(mode, text)
		}
	}
	// What is picked as an expression is a value in a body as well, where line breaks mean something.
	for _, text := range picked["expression"] {
		add("body", "a = "+text+"\nb {\n  c = "+text+" # d\n}\n")
	}
	for _, text := range picked["template"] {
		add("expression", "\""+text+"\"")
		add("body", "a = <<-EOT\n    "+strings.ReplaceAll(text, "\n", "\n  ")+"\n    EOT\nb = <<E\n"+text+"\nE\n")
	}
	r := &random{rand.New(rand.NewSource(seed))}
	for range expressions * times {
		add("expression", r.damaged(r.expression(4)))
	}
	for range templates * times {
		add("template", r.damaged(r.template(3)))
	}
	for range bodies * times {
		add("body", r.damaged(r.body(3, "")))
	}
	for range traversals * times {
		text := r.damaged(r.traversal())
		add("traversal", text)
		add("partial", text)
	}
	for range jsons * times {
		add("json", r.damaged(r.jsonBody(3)))
	}
	return all
}

type random struct {
	*rand.Rand
}

func (r *random) of(all ...string) string {
	return all[r.Intn(len(all))]
}

// A third of the texts is damaged, mostly in one place.
func (r *random) damaged(text string) string {
	if r.Intn(3) > 0 || text == "" {
		return text
	}
	for {
		at := r.Intn(len(text) + 1)
		switch r.Intn(4) {
		case 0:
			end := min(len(text), at+1+r.Intn(3))
			text = text[:at] + text[end:]
		case 1:
			text = text[:at] + r.of(marks...) + text[at:]
		case 2:
			end := min(len(text), at+1+r.Intn(12))
			text = text[:at] + text[at:end] + text[at:]
		default:
			text = text[:at]
		}
		if r.Intn(3) > 0 || text == "" {
			return text
		}
	}
}

var marks = []string{
	"(", ")", "[", "]", "{", "}", "\"", "${", "%{", "~}", "}", ",", ".", "..", "...", ":", "::", "?", "=", "==", "=>",
	"!", "-", "*", "/", "%", "&&", "||", "&", "|", "^", "~", ";", "'", "`", "\\", "\n", "\r\n", "\r", "\t", " ", "#", "//",
	"/*", "*/", "<<E\n", "<<-E\n", "\nE\n", "$", "$$", "$${", "%%{", "1", "1.5", "e5", "a", "for", "in", "if", "endif", "else",
	"é", "e\u0301", "👩‍👩‍👧", "“", "\x00", "\xff", "\u00a0", "\ufeff", "null", "true",
}

func (r *random) name() string {
	return r.of("a", "b", "var", "local", "each", "x1", "_y", "a-b", "größe", "名", "for", "if", "in", "e\u0301x", "path")
}

// White space where it means nothing, with line breaks if they mean nothing.
func (r *random) space() string {
	return r.of("", "", "", " ", " ", "  ", "\t")
}

func (r *random) free() string {
	if r.Intn(6) > 0 {
		return r.space()
	}
	return r.of("\n", "\n  ", " # c\n", "/* c */", "// é\n", "\r\n", " /* a\n b */ ")
}

func (r *random) list(n int, separator string, item func() string) string {
	var items []string
	for range n {
		items = append(items, item())
	}
	return strings.Join(items, separator)
}

func (r *random) number() string {
	return r.of("0", "1", "42", "1.5", "0.10", "1e5", "2E-3", "1.5e+10", "007", "123456789012345678901234567890.5", "1.0.0", "1.")
}

func (r *random) expression(depth int) string {
	if depth == 0 {
		return r.of(r.number(), r.name(), "true", "false", "null", `"s"`, `""`, `"é\n"`, "a.b", "[]", "{}")
	}
	sub := func() string { return r.expression(depth - 1 - r.Intn(depth)) }
	switch r.Intn(16) {
	case 0:
		return sub() + r.space() + r.of("+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||") + r.space() + sub()
	case 1:
		return sub() + r.space() + "?" + r.space() + sub() + r.space() + ":" + r.space() + sub()
	case 2:
		return r.of("-", "!", "- ", "!!") + sub()
	case 3:
		return "(" + r.free() + sub() + r.free() + ")"
	case 4:
		trail := r.of("", ",", r.free())
		return "[" + r.free() + r.list(1+r.Intn(3), r.free()+","+r.free(), sub) + trail + r.free() + "]"
	case 5, 6:
		item := func() string {
			key := r.of(r.name(), r.name(), `"`+r.name()+`"`, "("+sub()+")", `"${`+sub()+`}"`, "a.b", "1", "null", sub())
			return key + r.space() + r.of("=", "=", ":") + r.space() + sub()
		}
		separator := r.of(",", ", ", "\n", "\n\n  ", " # c\n", ",\n", "\r\n")
		return "{" + r.of("", " ", "\n") + r.list(1+r.Intn(3), separator, item) + r.of("", " ", "\n", ",", "\n ") + "}"
	case 7:
		names := r.of("a", "k, v", "x,y")
		end := r.of("", "", " if "+sub(), "...", "... if "+sub())
		return "[" + r.free() + "for " + names + " in" + " " + sub() + r.free() + ":" + r.free() + sub() + end + r.free() + "]"
	case 8:
		names := r.of("a", "k, v", "x,y")
		end := r.of("", "", " if "+sub(), "...", "... if "+sub(), "\n&& a")
		value := sub() + r.free() + "=>" + r.free() + sub()
		return "{" + r.free() + "for " + names + " in" + " " + sub() + r.free() + ":" + r.free() + value + end + r.free() + "}"
	case 9, 10:
		name := r.of("f", "max", "core::f", "provider::x::y", "a ::b", "größe")
		end := r.of("", "", "", ",", "...", "... ")
		return name + r.of("(", "(", " (") + r.free() + r.list(r.Intn(4), ","+r.free(), sub) + end + r.free() + ")"
	case 11, 12:
		return sub() + r.list(1+r.Intn(3), "", func() string {
			return r.of("."+r.name(), "."+r.name(), ".0", ".12", ".1.2", ".*", "[*]", "[0]", `["k"]`, "["+sub()+"]", "[ *]", " . a", "[\n0\n]",
				`["${a}"]`, "[true]", "[null]", "[-1]", `["e\u0301"]`)
		})
	case 13, 14:
		return `"` + r.quoted(depth-1) + `"`
	default:
		return r.heredoc(depth - 1)
	}
}

func (r *random) text() string {
	return r.of("a", "b c", " ", "  ", "é", "e\u0301", "$", "%", "$$", "$${", "%%{", "{", "}", "#", "//", "👍🏽", "'", "~", "$a", "%d", "\u1100\u1161")
}

func (r *random) sequence(depth int) string {
	sub := func() string { return r.expression(max(depth-1, 0)) }
	inside := func() string { return r.quoted(depth - 1) }
	open, shut := r.of("", "", "~"), r.of("", "", "~")
	directive := func(text string) string {
		return "%{" + r.of("", "", "~") + r.space() + text + r.space() + r.of("", "", "~") + "}"
	}
	if depth <= 0 {
		return "${" + open + r.space() + r.of("a", "a.b", "1", `"x"`) + r.space() + shut + "}"
	}
	switch r.Intn(5) {
	case 0:
		other := r.of("", directive("else")+inside())
		return directive("if "+sub()) + inside() + other + directive("endif")
	case 1:
		return directive("for "+r.of("a", "k, v")+" in "+sub()) + inside() + directive("endfor")
	case 2:
		return "${" + open + r.free() + sub() + r.free() + shut + "}"
	default:
		return "${" + open + r.space() + sub() + r.space() + shut + "}"
	}
}

func (r *random) quoted(depth int) string {
	return r.list(r.Intn(4), "", func() string {
		if r.Intn(2) == 0 {
			return r.sequence(depth)
		}
		return r.of(r.text(), r.text(), `\n`, `\"`, `\\`, `\t`, `\u00e9`, `\U0001F600`, `\q`, `\u12`)
	})
}

func (r *random) lines(depth int, newline string) string {
	return r.list(r.Intn(4), "", func() string {
		indent := r.of("", "  ", "    ", "\t", "\u00a0 ")
		line := r.list(r.Intn(4), "", func() string {
			if r.Intn(3) == 0 {
				return r.sequence(depth)
			}
			return r.of(r.text(), "\\n", "\"", "E x")
		})
		return indent + line + newline
	})
}

func (r *random) heredoc(depth int) string {
	newline := r.of("\n", "\n", "\n", "\r\n")
	marker := r.of("E", "EOT", "a-b", "é")
	return "<<" + r.of("", "-") + marker + newline + r.lines(depth, newline) + r.of("", "  ", "\t") + marker + newline
}

func (r *random) template(depth int) string {
	return r.lines(depth, r.of("\n", "\n", "\r\n")) + r.of("", "a", "$", "%", "  ", r.sequence(depth))
}

func (r *random) body(depth int, indent string) string {
	return r.list(r.Intn(5), "", func() string {
		space := r.space()
		end := r.of("\n", "\n", "\n", " # c\n", " // é\n", "\r\n", " /* c */\n", "\n\n")
		if depth == 0 || r.Intn(3) > 0 {
			name := r.of(r.name(), fmt.Sprint("n", r.Intn(1000)))
			return indent + name + space + "=" + r.space() + r.expression(depth) + end
		}
		labels := r.list(r.Intn(3), " ", func() string { return r.of(`"l"`, "l", `"a b"`, `"é\n"`, `""`, `"$${"`, `"${a}"`) })
		header := indent + r.of("block", "b", r.name()) + " " + labels + space + "{"
		switch r.Intn(5) {
		case 0:
			return header + r.of("", " ") + "}" + end
		case 1:
			return header + " a = " + r.expression(1) + r.of(" }", "}") + end
		default:
			return header + r.of("\n", "\n", " # c\n") + r.body(depth-1, indent+"  ") + indent + "}" + end
		}
	})
}

func (r *random) traversal() string {
	return r.name() + r.list(r.Intn(4), "", func() string {
		return r.of("."+r.name(), "."+r.name(), "[0]", "[1.5]", `["k"]`, `["\u00e9 e\u0301"]`, "[*]", ".*", ".0", " . a", "[ 1 ]", "[\n1]", "[a]", `["${a}"]`, "[-1]")
	})
}

func (r *random) jsonText() string {
	return r.of("a", "", "a ${b.c} d", "${a}", "$${a}", "a.b[0]", "${", "é", `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\n\t\"\\\/`, "%{ if a }b%{ endif }", `\q`, "//")
}

func (r *random) json(depth int) string {
	if depth == 0 {
		return r.of("null", "true", "false", "0", "-1.50", "1e3", "01", "1.", "nul", `"`+r.jsonText()+`"`, `"`+r.jsonText()+`"`, "[]", "{}")
	}
	sub := func() string { return r.json(depth - 1) }
	switch r.Intn(3) {
	case 0:
		return "[" + r.list(r.Intn(3), r.of(",", ", "), sub) + "]"
	case 1:
		return "{" + r.list(r.Intn(3), r.of(",", ",\n"), func() string { return `"` + r.jsonText() + `": ` + sub() }) + "}"
	default:
		return r.json(0)
	}
}

func (r *random) jsonBody(depth int) string {
	if depth == 0 {
		return r.of("{}", `{"a": 1}`, `{"b": "${c}"}`, `{"//": "comment"}`, "null", "[]", "1")
	}
	body := func() string { return r.jsonBody(depth - 1) }
	many := func(body func() string) string {
		return r.of(body(), body(), "["+r.list(r.Intn(3), ",", body)+"]")
	}
	labels := func(body func() string) func() string {
		return func() string {
			return "{" + r.list(r.Intn(3), ",", func() string { return r.of(`"l"`, `"m"`, `"é"`) + ": " + many(body) }) + "}"
		}
	}
	property := func() string {
		switch r.Intn(8) {
		case 0, 1, 2:
			return r.of(`"a"`, `"b"`, `"c"`) + r.of(": ", ":", " : ") + r.json(2)
		case 3:
			return `"x": ` + many(body)
		case 4:
			return `"y": ` + many(labels(body))
		case 5:
			return `"z": ` + many(labels(labels(body)))
		case 6:
			return `"j": ` + many(func() string { return r.json(2) })
		default:
			return r.of(`"//"`, `"unknown"`, `"a"`) + ": " + r.json(1)
		}
	}
	return "{" + r.of("", " ", "\n\t") + r.list(r.Intn(4), r.of(",", ", ", ",\n"), property) + "}"
}

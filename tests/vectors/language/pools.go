package main

import (
	"github.com/opentofu/opentofu/internal/lang/marks"
	"github.com/zclconf/go-cty/cty"
)

var anyType = []cty.Type{
	cty.String, cty.Number, cty.Bool, cty.List(cty.String), cty.List(cty.Number), cty.Set(cty.String), cty.Map(cty.String),
	cty.Set(cty.Number),
	cty.Tuple([]cty.Type{cty.String, cty.Number}), cty.Tuple([]cty.Type{cty.Number, cty.Number}), cty.EmptyTuple, cty.EmptyObject,
	cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number}),
	cty.Object(map[string]cty.Type{"a": cty.List(cty.String), "name": cty.Object(map[string]cty.Type{"x": cty.Bool})}),
	cty.List(cty.List(cty.String)), cty.Map(cty.List(cty.String)), cty.List(cty.Object(map[string]cty.Type{"a": cty.String})),
	cty.Tuple([]cty.Type{cty.List(cty.String), cty.EmptyTuple, cty.Tuple([]cty.Type{cty.String})}),
}

var sequences = []cty.Type{
	cty.List(cty.String), cty.List(cty.Number), cty.Set(cty.String), cty.Set(cty.Number), cty.EmptyTuple,
	cty.Tuple([]cty.Type{cty.String, cty.Number}), cty.Tuple([]cty.Type{cty.Number, cty.Number}), cty.Tuple([]cty.Type{cty.String}),
	cty.List(cty.List(cty.String)), cty.Tuple([]cty.Type{cty.List(cty.String), cty.EmptyTuple, cty.Tuple([]cty.Type{cty.String})}),
	cty.List(cty.Bool),
}

var mappings = []cty.Type{
	cty.Map(cty.String), cty.Map(cty.Number), cty.EmptyObject, cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number}),
	cty.Object(map[string]cty.Type{"a": cty.List(cty.String), "name": cty.Object(map[string]cty.Type{"x": cty.Bool})}),
	cty.Map(cty.List(cty.String)), cty.Object(map[string]cty.Type{"c": cty.Bool}),
}

// typesFor is what the parameters that take any type are meant for.
func typesFor(name string) []cty.Type {
	switch name {
	case "merge", "keys", "values", "tomap", "lookup":
		return mappings
	case "concat", "coalescelist", "flatten", "element", "slice", "reverse", "one", "sum", "setproduct", "tolist", "toset",
		"contains", "index", "zipmap", "formatlist":
		return sequences
	case "parseint", "tonumber", "tobool", "coalesce":
		return []cty.Type{cty.String, cty.String, cty.Number, cty.Bool}
	}
	return anyType
}

var numbers = []string{
	"0", "1", "2", "3", "-1", "-2", "4", "8", "10", "16", "0.5", "-0.5", "1.5", "2.5", "100", "1e3", "123456789012345678901234567890",
	"0.1", "0.333333", "-7", "1e-7", "9223372036854775807", "9223372036854775808", "3.7", "62", "256",
}

var texts = []string{
	"", "a", "b", "abc", "Hello World", "HELLO", "ÄÖÜß", "e\u0301", "👨\u200d👩\u200d👧 x", "true", "1", "12.5", " x ", "a,b,c", "\n", "x\r\n\n",
	"-", "%", "name", "ü", "a b c", "<&>", "\"q\"", "日本語", "${x}", "a/b/c.txt",
}

func stringsFor(name string) []string {
	if pool, ok := textsFor[name]; ok {
		return append(pool, texts[:8]...)
	}
	return texts
}

var textsFor = map[string][]string{
	"cidrhost": prefixes, "cidrnetmask": prefixes, "cidrsubnet": prefixes, "cidrsubnets": prefixes, "cidrcontains": prefixes,
	"formatdate": {"YYYY-MM-DD", "EEEE, DD-MMM-YY hh:mm:ss ZZZ", "h 'o''clock'", "HH:mmAA", "2020-02-29T12:30:45Z", "2021-12-31T00:05:09+02:30"},
	"timeadd":    {"2020-02-29T12:30:45Z", "1h30m", "-24h", "1.5s", "10ms", "2021-12-31T23:59:59-05:00", "h", "5"},
	"timecmp":    {"2020-02-29T12:30:45Z", "2020-02-29T14:30:45+02:00", "2021-12-31T23:59:59.5Z", "2021-02-30T00:00:00Z"},
	"regex":      patterns, "regexall": patterns, "replace": {"/a(b)?/", "$1x", "/b/", "abcab", "${1}", "/[/"},
	"jsondecode": documents, "yamldecode": documents,
	"csvdecode":    {"a,b\n1,2\n3,4\n", "a,a\n1,2", "a\n\"x\"\"y\"\n", "a,b\n1\n", "a b,c\n\n\"1\n2\",3"},
	"base64decode": {"YQ==", "YWJj", "/w==", "YQ", "YW Jj", "w6TDtg=="}, "base64gunzip": {"H4sIAAAAAAAA/0pMSgYAAAD//wEAAP//wkEkNQMAAAA=", "YQ=="},
	"textdecodebase64": {"UTF-8", "UTF-16LE", "ISO-8859-1", "windows-1252", "YQBiAA==", "5A=="},
	"textencodebase64": {"UTF-8", "UTF-16LE", "UTF-16BE", "ISO-8859-1", "windows-1252", "äb"},
	"urldecode":        {"a%20b", "a+b", "%zz", "%C3%A4"}, "urlencode": {"a b", "ä&=?/", "~-_."},
	"parseint": {"ff", "-10", "777", "Zz", "0x1f", "1_000", "12"}, "tonumber": {"1", "1.50", "-0", "1e5", "0x1f", " 1", "1_0", "+5", ".5", "5."},
	"tobool": {"true", "false", "1", "0", "True", "yes"}, "format": formats, "formatlist": formats,
	"uuidv5": {"dns", "url", "oid", "x500", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com", "nope"},
	"file":   files, "fileexists": files, "filebase64": files, "filemd5": files, "filesha1": files, "filesha256": files, "filesha512": files,
	"filebase64sha256": files, "filebase64sha512": files, "fileset": {".", "sub", "*", "**", "*.txt", "**/*.txt", "{a,b}.txt", "sub/*", "nope"},
	"basename": paths, "dirname": paths, "trimprefix": {"abcabc", "abc"}, "trimsuffix": {"abcabc", "abc"}, "trim": {"xxaxx", "x", "ax"},
	"split": {",", "a,b,c", "a"}, "startswith": {"abc", "ab"}, "endswith": {"abc", "bc"}, "strcontains": {"abc", "b"},
	"title": {"hello wORLD", "it's a-b_c ünder", "x.y z"}, "rsadecrypt": {"YQ==", "-----BEGIN RSA PRIVATE KEY-----"},
	"chomp": {"a\n\n", "a\r\n", "a\r", "\n\n"}, "indent": {"a\nb\n", "x"}, "lookup": {"a", "b", "c", "name"},
}

var (
	prefixes  = []string{"10.0.0.0/16", "10.1.2.3/24", "fd00:1234::/48", "192.168.0.0/30", "010.0.0.0/8", "10.0.0.0/33", "10.0.0.1", "::1", "0.0.0.0/0", "fd00::5", "10.0.255.0/24"}
	patterns  = []string{"[a-z]+", "(a)(b)?", "(?P<x>a)|(?P<y>b)", "^$", "\\d+", "(?i)hello", "[[:upper:]]", "a**", "(", "\\w+\\s?", "abc 123", "ab12 Hello"}
	documents = []string{
		"{\"a\":1,\"b\":[true,null,\"x\"]}", "[]", "{}", "1.50", "null", "\"x\"", "{\"a\":1,\"a\":2}", "[1,", "a: 1\nb:\n  - x\n  - yes\n", "- 1\n- 0x1f\n- 1e3\n- ~\n",
		"a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n", "a: |\n  x\n  y\n", "2020-01-02", "'1'", "a: b: c", "1: x", "!!str 5", "--- 1\n--- 2\n", "12345678901234567890.5",
	}
	formats = []string{"%s", "%d items", "%5.2f|%-6s|%06d", "%q", "%v %#v", "%t", "%%", "%x %X %o %b", "%[2]s %[1]s", "%e", "%g", "%s %s", "%z", "%", "%+d", "plain", "%-10s|", "%.2s"}
	files   = []string{"a.txt", "sub/c.txt", "nope.txt", "binary.bin", "sub", "./a.txt"}
	paths   = []string{"a/b/c.txt", "/a/b/", "", "/", "a", "../x", "a//b", "."}
)

// places are variables for hand-picked calls and expressions.
var places = map[string]cty.Value{
	"unknown":     cty.DynamicVal,
	"unknown_str": cty.UnknownVal(cty.String), "unknown_num": cty.UnknownVal(cty.Number), "unknown_bool": cty.UnknownVal(cty.Bool),
	"unknown_list": cty.UnknownVal(cty.List(cty.String)), "unknown_map": cty.UnknownVal(cty.Map(cty.String)), "unknown_set": cty.UnknownVal(cty.Set(cty.String)),
	"id":     cty.UnknownVal(cty.String).Refine().NotNull().StringPrefixFull("i-").NewValue(),
	"count":  cty.UnknownVal(cty.Number).Refine().NotNull().NumberRangeLowerBound(number("1"), true).NumberRangeUpperBound(number("5"), true).NewValue(),
	"some":   cty.UnknownVal(cty.List(cty.String)).Refine().NotNull().CollectionLengthLowerBound(1).CollectionLengthUpperBound(3).NewValue(),
	"secret": cty.StringVal("hush").Mark(marks.Sensitive), "token": cty.StringVal("once").Mark(marks.Ephemeral),
	"secrets":       cty.ListVal([]cty.Value{cty.StringVal("x"), cty.StringVal("y").Mark(marks.Sensitive)}),
	"secret_list":   cty.ListVal([]cty.Value{cty.StringVal("x"), cty.StringVal("y")}).Mark(marks.Sensitive),
	"secret_map":    cty.MapVal(map[string]cty.Value{"a": cty.StringVal("x").Mark(marks.Sensitive), "b": cty.StringVal("y")}),
	"secret_number": number("3").Mark(marks.Sensitive), "secret_bool": cty.True.Mark(marks.Sensitive),
	"list": cty.ListVal([]cty.Value{cty.StringVal("c"), cty.StringVal("a"), cty.StringVal("b")}), "empty_list": cty.ListValEmpty(cty.String),
	"numbers": cty.ListVal([]cty.Value{number("3"), number("1"), number("2")}),
	"set":     cty.SetVal([]cty.Value{cty.StringVal("x"), cty.StringVal("y")}), "empty_set": cty.SetValEmpty(cty.String),
	"map": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("1"), "b": cty.StringVal("2")}), "empty_map": cty.MapValEmpty(cty.String),
	"partly":     cty.ListVal([]cty.Value{cty.StringVal("a"), cty.UnknownVal(cty.String)}),
	"partly_map": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("1"), "b": cty.UnknownVal(cty.String)}),
	"partly_set": cty.SetVal([]cty.Value{cty.StringVal("a"), cty.UnknownVal(cty.String)}),
	"objects": cty.ListVal([]cty.Value{
		cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("a"), "tags": cty.ListVal([]cty.Value{cty.StringVal("t")})}),
		cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("b"), "tags": cty.ListValEmpty(cty.String)}),
	}),
	"object":   cty.ObjectVal(map[string]cty.Value{"a": number("1"), "b": cty.TupleVal([]cty.Value{cty.True, cty.StringVal("x")}), "n": cty.NullVal(cty.String)}),
	"null_str": cty.NullVal(cty.String), "null_list": cty.NullVal(cty.List(cty.String)),
	"t": cty.True, "f": cty.False, "n": number("7"), "s": cty.StringVal("text"),
}

// number has the precision of a number in source, not that of a count.
func number(digits string) cty.Value {
	return cty.MustParseNumberVal(digits)
}

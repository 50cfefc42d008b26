// Writes what hashicorp/hcl makes of texts: the vectors that the tests of the crate `hcl` replay.
//
//	go run . vectors | gzip -9n > vectors.jsonl.gz  the vectors; `vectors SEED TIMES` makes others, and more
//	find DIR -name '*.tf' | go run . files   the dump of each file, or with `hashes` a line for each
//	find DIR -name '*.tf' | go run . format  the format of each file
//	find DIR -name '*.tf' | go run . speed   how fast the files are parsed
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// A vector is a text, how it is parsed, and what comes of it.
type vector struct {
	Mode string `json:"mode"`
	Text string `json:"text"`
	// The text, if it is not UTF-8.
	Base64 string `json:"base64,omitempty"`
	Dump   string `json:"dump,omitempty"`
	// The text as it is formatted, if it is a valid body.
	Format string `json:"format,omitempty"`
	// The offsets at which errors start, if there are any.
	Errors []int `json:"errors,omitempty"`
}

func sortBy[T any](items []T, key func(T) int) {
	sort.SliceStable(items, func(i, j int) bool { return key(items[i]) < key(items[j]) })
}

func parse(mode string, text []byte) vector {
	var d dump
	var diags hcl.Diagnostics
	start := hcl.InitialPos
	format := ""
	switch mode {
	case "body":
		var file *hcl.File
		file, diags = hclsyntax.ParseConfig(text, "", start)
		if !diags.HasErrors() {
			d.body(file.Body.(*hclsyntax.Body))
			format = string(hclwrite.Format(text))
		}
	case "expression", "template":
		var expr hclsyntax.Expression
		if mode == "expression" {
			expr, diags = hclsyntax.ParseExpression(text, "", start)
		} else {
			expr, diags = hclsyntax.ParseTemplate(text, "", start)
		}
		if !diags.HasErrors() {
			d.expression(expr)
			d.variables(expr)
		}
	case "traversal", "partial":
		var traversal hcl.Traversal
		if mode == "traversal" {
			traversal, diags = hclsyntax.ParseTraversalAbs(text, "", start)
		} else {
			traversal, diags = hclsyntax.ParseTraversalPartial(text, "", start)
		}
		if !diags.HasErrors() {
			d.steps(traversal)
		}
	case "json":
		var file *hcl.File
		file, diags = hcljson.Parse(text, "")
		if !diags.HasErrors() {
			diags = d.json(file.Body, 0)
		}
	}
	v := vector{Mode: mode, Text: string(text), Dump: d.String(), Format: format}
	if !validText(text) {
		v.Text, v.Format, v.Base64 = "", "", base64.StdEncoding.EncodeToString(text)
	}
	if diags.HasErrors() {
		v.Dump = ""
		for _, diag := range diags {
			v.Errors = append(v.Errors, diag.Subject.Start.Byte)
		}
		slices.Sort(v.Errors)
		v.Errors = slices.Compact(v.Errors)
	}
	return v
}

func first(errors []int) []int {
	return errors[:min(1, len(errors))]
}

func mode(path string) string {
	switch {
	case strings.HasSuffix(path, ".json"):
		return "json"
	case strings.HasSuffix(path, ".tftpl"), strings.HasSuffix(path, ".tpl"):
		return "template"
	default:
		return "body"
	}
}

func paths(each func(path string, text []byte)) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text, err := os.ReadFile(lines.Text())
		if err != nil {
			panic(err)
		}
		each(lines.Text(), text)
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch os.Args[1] {
	case "vectors":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		seed, times := int64(1), 1
		if len(os.Args) > 3 {
			fmt.Sscan(os.Args[2]+" "+os.Args[3], &seed, &times)
		}
		for _, v := range vectors(seed, times) {
			encoder.Encode(v)
		}
	case "files":
		paths(func(path string, text []byte) {
			v := parse(mode(path), text)
			fmt.Fprintln(out, path, first(v.Errors))
			fmt.Fprintln(out, v.Dump)
		})
	case "hashes":
		paths(func(path string, text []byte) {
			v := parse(mode(path), text)
			fmt.Fprintf(out, "%s %v %x\n", path, first(v.Errors), sha256.Sum256([]byte(v.Dump)))
		})
	case "format":
		paths(func(path string, text []byte) {
			fmt.Fprintf(out, "== %s\n%s\n", path, hclwrite.Format(text))
		})
	case "speed":
		var all [][]byte
		size := 0
		paths(func(_ string, text []byte) {
			all = append(all, text)
			size += len(text)
		})
		best := time.Hour
		for range 5 {
			begin := time.Now()
			for _, text := range all {
				hclsyntax.ParseConfig(text, "", hcl.InitialPos)
			}
			best = min(best, time.Since(begin))
		}
		seconds := best.Seconds()
		fmt.Fprintf(out, "%d files, %.1f MB, %.1f MB/s\n", len(all), float64(size)/1e6, float64(size)/1e6/seconds)
	}
}

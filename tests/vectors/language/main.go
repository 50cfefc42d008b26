// Language writes down what OpenTofu makes of calls of its functions and of expressions: the value with its type, its
// unknown parts and its marks, or that there is an error. One JSON document a line; the tests of the crate `language`
// replay them. A number after the kind is another seed.
//
//	go run . calls | gzip -9n > calls.jsonl.gz
//	go run . expressions | gzip -9n > expressions.jsonl.gz
//	go run . operations | gzip -9n > operations.jsonl.gz
//	go run . constraints | gzip -9n > constraints.jsonl.gz
//
// The module stands under OpenTofu's own path because the function table is in an internal package there.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/opentofu/opentofu/internal/lang"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	seed := int64(1)
	if len(os.Args) > 2 {
		given, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err != nil {
			panic(err)
		}
		seed = given
	}
	judge := newJudge(seed)
	switch os.Args[1] {
	case "calls":
		writeCalls(judge, lines)
	case "expressions":
		writeExpressions(judge, lines)
	case "operations":
		writeOperations(judge, lines)
	case "constraints":
		writeConstraints(judge, lines)
	case "functions":
		writeFunctions(judge)
	default:
		panic("calls, expressions, operations, constraints or functions")
	}
}

// judge evaluates with OpenTofu's functions; file functions read the directory `files`.
type judge struct {
	functions map[string]function.Function
	random    *rand.Rand
}

func newJudge(seed int64) *judge {
	base, err := filepath.Abs("files")
	if err != nil {
		panic(err)
	}
	scope := &lang.Scope{BaseDir: base, PureOnly: true}
	return &judge{scope.Functions(), rand.New(rand.NewSource(seed))}
}

// evaluate gives no value when there is an error.
func (j *judge) evaluate(source string, variables map[string]cty.Value) (value *cty.Value) {
	expression, diagnostics := hclsyntax.ParseExpression([]byte(source), "", hcl.InitialPos)
	if diagnostics.HasErrors() {
		return nil
	}
	// A panic of a function is an error of the call; one elsewhere is a defect that nothing should reproduce.
	result, diagnostics := expression.Value(&hcl.EvalContext{Variables: variables, Functions: j.functions})
	if diagnostics.HasErrors() {
		return nil
	}
	return &result
}

func writeFunctions(j *judge) {
	for name, f := range j.functions {
		fmt.Println(name, len(f.Params()), f.VarParam() != nil)
	}
}

func write(lines *json.Encoder, vector any) {
	if err := lines.Encode(vector); err != nil {
		panic(err)
	}
}

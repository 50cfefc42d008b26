package main

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Functions can be called on a provider without a configuration.
func (*corner) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		func() function.Function { return joined{} },
		func() function.Function { return kindOf{} },
		func() function.Function { return refused{} },
	}
}

// joined joins words. An empty separator is a wrong argument, and an empty word is one too.
type joined struct{}

func (joined) Metadata(_ context.Context, _ function.MetadataRequest, response *function.MetadataResponse) {
	response.Name = "joined"
}

func (joined) Definition(_ context.Context, _ function.DefinitionRequest, response *function.DefinitionResponse) {
	response.Definition = function.Definition{
		Summary:           "Joins words",
		Parameters:        []function.Parameter{function.StringParameter{Name: "separator"}},
		VariadicParameter: function.StringParameter{Name: "words"},
		Return:            function.StringReturn{},
	}
}

func (joined) Run(ctx context.Context, request function.RunRequest, response *function.RunResponse) {
	var separator string
	var words []string
	if response.Error = request.Arguments.Get(ctx, &separator, &words); response.Error != nil {
		return
	}
	if separator == "" {
		response.Error = function.NewArgumentFuncError(0, "the separator is empty.")
		return
	}
	for at, word := range words {
		if word == "" {
			response.Error = function.NewArgumentFuncError(int64(at)+1, "a word is\nempty.")
			return
		}
	}
	response.Error = response.Result.Set(ctx, strings.Join(words, separator))
}

// kindOf says whether its argument is null, unknown or known.
type kindOf struct{}

func (kindOf) Metadata(_ context.Context, _ function.MetadataRequest, response *function.MetadataResponse) {
	response.Name = "kind_of"
}

func (kindOf) Definition(_ context.Context, _ function.DefinitionRequest, response *function.DefinitionResponse) {
	value := function.ListParameter{Name: "value", ElementType: types.StringType, AllowNullValue: true, AllowUnknownValues: true}
	response.Definition = function.Definition{
		Summary:    "Says what is known of a list",
		Parameters: []function.Parameter{value},
		Return:     function.StringReturn{},
	}
}

func (kindOf) Run(ctx context.Context, request function.RunRequest, response *function.RunResponse) {
	var value types.List
	if response.Error = request.Arguments.Get(ctx, &value); response.Error != nil {
		return
	}
	kind := "known"
	switch {
	case value.IsNull():
		kind = "null"
	case value.IsUnknown():
		kind = "unknown"
	default:
		for _, item := range value.Elements() {
			if item.IsUnknown() {
				kind = "unknown inside"
			}
		}
	}
	response.Error = response.Result.Set(ctx, kind)
}

// refused fails, quotes its argument in the message and prints it to the log, as providers should not.
type refused struct{}

func (refused) Metadata(_ context.Context, _ function.MetadataRequest, response *function.MetadataResponse) {
	response.Name = "refused"
}

func (refused) Definition(_ context.Context, _ function.DefinitionRequest, response *function.DefinitionResponse) {
	response.Definition = function.Definition{
		Summary:    "Fails",
		Parameters: []function.Parameter{function.StringParameter{Name: "text"}},
		Return:     function.BoolReturn{},
	}
}

func (refused) Run(ctx context.Context, request function.RunRequest, response *function.RunResponse) {
	var text string
	if response.Error = request.Arguments.Get(ctx, &text); response.Error == nil {
		response.Error = function.NewFuncError("the service does not know " + text)
	}
}

package main

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// generating improves the generated configurations of the framework: it omits the default of `count_of`. For a thing
// with the text `no config`, it returns an error.
type generating struct{ tfprotov6.ProviderServer }

// GetProviderSchema adds a capability that this version of the framework does not report.
func (g *generating) GetProviderSchema(ctx context.Context, request *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	response, err := g.ProviderServer.GetProviderSchema(ctx, request)
	if err == nil && response.ServerCapabilities != nil {
		response.ServerCapabilities.GenerateResourceConfig = true
	}
	return response, err
}

func (g *generating) GenerateResourceConfig(ctx context.Context, request *tfprotov6.GenerateResourceConfigRequest) (*tfprotov6.GenerateResourceConfigResponse, error) {
	response, err := g.ProviderServer.GenerateResourceConfig(ctx, request)
	if err != nil || request.TypeName != "corner_thing" {
		return response, err
	}
	schemas, err := g.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	ty := schemas.ResourceSchemas[request.TypeName].ValueType()
	value, err := response.Config.Unmarshal(ty)
	if err != nil {
		return nil, err
	}
	var attributes map[string]tftypes.Value
	if err := value.As(&attributes); err != nil {
		return nil, err
	}
	if attributes["text"].Equal(tftypes.NewValue(tftypes.String, "no config")) {
		problem := &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityError, Summary: "There is no configuration of this"}
		return &tfprotov6.GenerateResourceConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{problem}}, nil
	}
	if attributes["count_of"].Equal(tftypes.NewValue(tftypes.Number, big.NewFloat(3))) {
		attributes["count_of"] = tftypes.NewValue(tftypes.Number, nil)
	}
	config, err := tfprotov6.NewDynamicValue(ty, tftypes.NewValue(ty, attributes))
	response.Config = &config
	return response, err
}

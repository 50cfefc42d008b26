package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"
)

type cloud struct {
	tfprotov6.ProviderServer // What is not written below is not offered.

	schema *schema
	config cty.Value
}

type diagnostics = []*tfprotov6.Diagnostic

func failed(errs ...error) diagnostics {
	if err := errors.Join(errs...); err != nil {
		return diagnostics{{Severity: tfprotov6.DiagnosticSeverityError, Summary: err.Error()}}
	}
	return nil
}

func decode(value *tfprotov6.DynamicValue, t cty.Type) (cty.Value, error) {
	if value == nil {
		return cty.NullVal(t), nil
	}
	return msgpack.Unmarshal(value.MsgPack, t)
}

func encode(value cty.Value, t cty.Type) *tfprotov6.DynamicValue {
	data, err := msgpack.Marshal(value, t)
	must(err)
	return &tfprotov6.DynamicValue{MsgPack: data}
}

func text(value cty.Value, name string) string {
	if value.IsNull() || !value.Type().HasAttribute(name) {
		return ""
	}
	if field := value.GetAttr(name); field.IsKnown() && !field.IsNull() {
		return field.AsString()
	}
	return ""
}

func (c *cloud) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return &tfprotov6.GetMetadataResponse{}, nil
}

func (c *cloud) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	all := func(blocks map[string]block) map[string]*tfprotov6.Schema {
		result := map[string]*tfprotov6.Schema{}
		for name, one := range blocks {
			result[name] = &tfprotov6.Schema{Block: one.protocol()}
		}
		return result
	}
	return &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{GetProviderSchemaOptional: true},
		Provider:           &tfprotov6.Schema{Block: c.schema.Provider.protocol()},
		ResourceSchemas:    all(c.schema.Resources),
		DataSourceSchemas:  all(c.schema.Data),

		EphemeralResourceSchemas: all(c.schema.Ephemerals),
	}, nil
}

func (c *cloud) GetResourceIdentitySchemas(
	context.Context, *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (c *cloud) ValidateProviderConfig(
	_ context.Context, request *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: request.Config}, nil
}

func (c *cloud) ConfigureProvider(
	_ context.Context, request *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	config, err := decode(request.Config, c.schema.Provider.cty())
	c.config = config
	if token := text(config, "token"); err == nil && token != "" {
		_, err = note("configured with %s", token)
	}
	return &tfprotov6.ConfigureProviderResponse{Diagnostics: failed(err)}, nil
}

func (c *cloud) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (c *cloud) ValidateResourceConfig(
	context.Context, *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (c *cloud) ValidateDataResourceConfig(
	context.Context, *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (c *cloud) UpgradeResourceState(
	_ context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	t := c.schema.Resources[request.TypeName].cty()
	value, err := ctyjson.Unmarshal(request.RawState.JSON, t)
	if err != nil {
		return &tfprotov6.UpgradeResourceStateResponse{Diagnostics: failed(err)}, nil
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: encode(value, t)}, nil
}

func (c *cloud) PlanResourceChange(
	_ context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	b := c.schema.Resources[request.TypeName]
	prior, err1 := decode(request.PriorState, b.cty())
	proposed, err2 := decode(request.ProposedNewState, b.cty())
	config, err3 := decode(request.Config, b.cty())
	if refused := failed(err1, err2, err3); refused != nil || proposed.IsNull() {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: request.ProposedNewState, Diagnostics: refused}, nil
	}
	planned, replace := c.planned(b, prior, proposed, config)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: encode(planned, b.cty()), RequiresReplace: replace}, nil
}

func (c *cloud) ApplyResourceChange(
	_ context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	kind, t := request.TypeName, c.schema.Resources[request.TypeName].cty()
	prior, err1 := decode(request.PriorState, t)
	planned, err2 := decode(request.PlannedState, t)
	config, err3 := decode(request.Config, t)
	if err3 == nil && text(config, "token") != "" {
		_, err3 = note("%s has %s", kind, text(config, "token"))
	}
	if refused := failed(err1, err2, err3); refused != nil {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: request.PriorState, Diagnostics: refused}, nil
	}
	var result cty.Value
	var err error
	switch {
	case planned.IsNull():
		result, err = planned, objects.remove(kind, text(prior, "id"))
	case prior.IsNull():
		result, err = objects.create(kind, planned, t)
	default:
		result, err = objects.update(kind, text(prior, "id"), planned, t)
	}
	if err != nil {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: request.PriorState, Diagnostics: failed(err)}, nil
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: encode(result, t)}, nil
}

func (c *cloud) ReadResource(
	_ context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	t := c.schema.Resources[request.TypeName].cty()
	current, err := decode(request.CurrentState, t)
	if err == nil {
		current, err = objects.read(request.TypeName, text(current, "id"), t)
	}
	if err != nil {
		return &tfprotov6.ReadResourceResponse{NewState: request.CurrentState, Diagnostics: failed(err)}, nil
	}
	return &tfprotov6.ReadResourceResponse{NewState: encode(current, t)}, nil
}

func (c *cloud) ImportResourceState(
	_ context.Context, request *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	kind, t := request.TypeName, c.schema.Resources[request.TypeName].cty()
	found, err := objects.read(kind, request.ID, t)
	if err == nil && found.IsNull() {
		err = fmt.Errorf("there is no %s %s", kind, request.ID)
	}
	if err != nil {
		return &tfprotov6.ImportResourceStateResponse{Diagnostics: failed(err)}, nil
	}
	imported := &tfprotov6.ImportedResource{TypeName: kind, State: encode(found, t)}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{imported}}, nil
}

// ReadDataSource finds the object that has the ID, or decides the values that follow from the arguments.
func (c *cloud) ReadDataSource(
	_ context.Context, request *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	b := c.schema.Data[request.TypeName]
	config, err := decode(request.Config, b.cty())
	if err != nil {
		return &tfprotov6.ReadDataSourceResponse{Diagnostics: failed(err)}, nil
	}
	if b.Finds == "" {
		asked := undecided(b, config)
		_, short, _ := strings.Cut(request.TypeName, "_")
		found := decided(asked, short+"-"+digest(request.TypeName, known(asked))[:8])
		return &tfprotov6.ReadDataSourceResponse{State: encode(found, b.cty())}, nil
	}
	id := text(config, "id")
	object, err := objects.read(b.Finds, id, c.schema.Resources[b.Finds].cty())
	if err == nil && object.IsNull() {
		err = fmt.Errorf("there is no %s %s", b.Finds, id)
	}
	if err != nil {
		return &tfprotov6.ReadDataSourceResponse{Diagnostics: failed(err)}, nil
	}
	fields := map[string]cty.Value{}
	for name := range b.Attributes {
		fields[name] = object.GetAttr(name)
	}
	return &tfprotov6.ReadDataSourceResponse{State: encode(cty.ObjectVal(fields), b.cty())}, nil
}

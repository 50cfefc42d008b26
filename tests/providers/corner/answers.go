package main

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// hanging is the method that never returns, from the environment; `start` for the start of the process.
var hanging = os.Getenv("CORNER_HANG")

// hangs never returns if the method is the one to hang in. The client cannot stop it.
func hangs(method string) {
	for hanging == method {
		time.Sleep(time.Hour)
	}
}

// startSlowly takes 100 s as long as the file of the environment variable exists.
func startSlowly() {
	if _, err := os.Stat(os.Getenv("CORNER_SLOW_START")); err == nil {
		time.Sleep(100 * time.Second)
	}
}

// answers hangs in any method, and falsifies the plans of a corner_trouble on demand:
//
//	on_plan: garbage  the planned state cannot be decoded
//	on_plan: huge     the planned private data has 100 MB
//	on_plan: flood    the plan has 21,000 empty diagnostics
type answers struct {
	tfprotov6.ProviderServer
	corner *corner
}

func (a *answers) GetProviderSchema(ctx context.Context, request *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	hangs("GetProviderSchema")
	return a.ProviderServer.GetProviderSchema(ctx, request)
}

func (a *answers) ValidateProviderConfig(ctx context.Context, request *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	hangs("ValidateProviderConfig")
	return a.ProviderServer.ValidateProviderConfig(ctx, request)
}

func (a *answers) ConfigureProvider(ctx context.Context, request *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	hangs("ConfigureProvider")
	return a.ProviderServer.ConfigureProvider(ctx, request)
}

func (a *answers) ValidateResourceConfig(ctx context.Context, request *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	hangs("ValidateResourceConfig")
	return a.ProviderServer.ValidateResourceConfig(ctx, request)
}

func (a *answers) UpgradeResourceState(ctx context.Context, request *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	hangs("UpgradeResourceState")
	return a.ProviderServer.UpgradeResourceState(ctx, request)
}

func (a *answers) ReadResource(ctx context.Context, request *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	hangs("ReadResource")
	return a.ProviderServer.ReadResource(ctx, request)
}

func (a *answers) ImportResourceState(ctx context.Context, request *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	hangs("ImportResourceState")
	return a.ProviderServer.ImportResourceState(ctx, request)
}

func (a *answers) ReadDataSource(ctx context.Context, request *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	hangs("ReadDataSource")
	return a.ProviderServer.ReadDataSource(ctx, request)
}

func (a *answers) StopProvider(ctx context.Context, request *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	hangs("StopProvider")
	return a.ProviderServer.StopProvider(ctx, request)
}

func (a *answers) PlanResourceChange(ctx context.Context, request *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	response, err := a.ProviderServer.PlanResourceChange(ctx, request)
	if err != nil || request.TypeName != "corner_trouble" || (&trouble{existing{configured{a.corner.world}}}).failuresDisabled() {
		return response, err
	}
	// In MessagePack, a short string follows a byte with its length.
	asks := func(what string) bool {
		return bytes.Contains(request.Config.MsgPack, append([]byte("on_plan"), append([]byte{0xa0 | byte(len(what))}, what...)...))
	}
	switch {
	case asks("garbage"):
		response.PlannedState = &tfprotov6.DynamicValue{MsgPack: []byte("\xc1 this is not msgpack")}
	case asks("huge"):
		response.PlannedPrivate = make([]byte, 100_000_000)
	case asks("flood"):
		for range 21_000 {
			response.Diagnostics = append(response.Diagnostics, &tfprotov6.Diagnostic{Severity: tfprotov6.DiagnosticSeverityWarning})
		}
	}
	return response, err
}

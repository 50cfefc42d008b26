package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// The file in the working directory that says what happened to sessions, one line each. Tests read it.
const sessionsFile = "sessions.log"

// note adds a line, and returns the number of lines. Several processes of the provider may write.
func note(format string, arguments ...any) (int, error) {
	file, err := os.OpenFile(sessionsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = file.WriteString(fmt.Sprintf(format, arguments...) + "\n")
	written, err2 := os.ReadFile(sessionsFile)
	return strings.Count(string(written), "\n"), errors.Join(err, err2, file.Close())
}

func (c *cloud) ValidateEphemeralResourceConfig(
	_ context.Context, request *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	config, err := decode(request.Config, c.schema.Ephemerals[request.TypeName].cty())
	if err == nil && text(config, "user") == "nobody" {
		err = fmt.Errorf("nobody has no session")
	}
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{Diagnostics: failed(err)}, nil
}

// OpenEphemeralResource begins a session. Its token is another one each time.
func (c *cloud) OpenEphemeralResource(
	_ context.Context, request *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	b := c.schema.Ephemerals[request.TypeName]
	config, err := decode(request.Config, b.cty())
	if err != nil {
		return &tfprotov6.OpenEphemeralResourceResponse{Diagnostics: failed(err)}, nil
	}
	user := text(config, "user")
	number, err := note("open %s in %s", user, text(c.config, "region"))
	if err == nil && user == "locked" {
		err = fmt.Errorf("the account of %s is locked", user)
	}
	if err != nil {
		return &tfprotov6.OpenEphemeralResourceResponse{Diagnostics: failed(err)}, nil
	}
	fields := config.AsValueMap()
	fields["token"] = cty.StringVal(fmt.Sprintf("token-%d-of-%s", number, user))
	answer := &tfprotov6.OpenEphemeralResourceResponse{
		Result: encode(cty.ObjectVal(fields), b.cty()), Private: []byte(user),
	}
	if seconds := fields["lasts"]; !seconds.IsNull() {
		lasts, _ := seconds.AsBigFloat().Float64()
		answer.RenewAt = time.Now().Add(time.Duration(lasts * float64(time.Second)))
	}
	return answer, nil
}

func (c *cloud) RenewEphemeralResource(
	_ context.Context, request *tfprotov6.RenewEphemeralResourceRequest,
) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	_, err := note("renew %s", request.Private)
	return &tfprotov6.RenewEphemeralResourceResponse{
		Private: request.Private, RenewAt: time.Now().Add(time.Hour), Diagnostics: failed(err),
	}, nil
}

func (c *cloud) CloseEphemeralResource(
	_ context.Context, request *tfprotov6.CloseEphemeralResourceRequest,
) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	_, err := note("close %s", request.Private)
	return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: failed(err)}, nil
}

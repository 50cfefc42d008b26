// Command legacy is a provider for tests, of protocol 5 and the second SDK. It does what such providers do: it does not
// keep to the rules of plans, changes values on its own, and has blocks. Its objects are files, as those of `corner`.
package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() *schema.Provider {
	return &schema.Provider{
		Schema: map[string]*schema.Schema{
			"folder": {Type: schema.TypeString, Optional: true, Description: "where objects are kept; without it they are not"},
			"fail":   {Type: schema.TypeString, Optional: true, Description: "refuse the configuration with this text"},
		},
		ResourcesMap: map[string]*schema.Resource{
			"legacy_thing":   thing(),
			"legacy_trouble": trouble(),
		},
		ConfigureContextFunc: func(_ context.Context, settings *schema.ResourceData) (any, diag.Diagnostics) {
			if text := settings.Get("fail").(string); text != "" {
				return nil, diag.Errorf("the configuration is refused: %s", text)
			}
			return &world{folder: settings.Get("folder").(string)}, nil
		},
	}
}

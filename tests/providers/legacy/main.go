// Command legacy is a provider for tests with protocol 5 and the second SDK. Like many such providers, it violates the
// rules of plans, normalizes values, and has nested blocks. Its objects are files, like those of `corner`.
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
			"legacy_hashed":  hashed(),
			"legacy_named":   named(),
			"legacy_nested":  nested(),
			"legacy_thing":   thing(),
			"legacy_trouble": trouble(),
		},
		ConfigureContextFunc: func(_ context.Context, configuration *schema.ResourceData) (any, diag.Diagnostics) {
			if text := configuration.Get("fail").(string); text != "" {
				return nil, diag.Errorf("the configuration is refused: %s", text)
			}
			return &world{directory: configuration.Get("folder").(string)}, nil
		},
	}
}

package main

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// named has the ID NAMESPACE/NAME, as objects of many services. Its import reads only the text. If its directory has
// the file `crash-after`, a create crashes after the change.
func named() *schema.Resource {
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"metadata": {Type: schema.TypeList, Required: true, MaxItems: 1, ForceNew: true, Elem: &schema.Resource{
				Schema: map[string]*schema.Schema{
					"name":      {Type: schema.TypeString, Required: true, ForceNew: true},
					"namespace": {Type: schema.TypeString, Optional: true, Default: "default", ForceNew: true},
				},
			}},
			"text": {Type: schema.TypeString, Optional: true},
			"wait": {Type: schema.TypeBool, Optional: true, Default: true},
			// Changes with each read, like the resource version of a Kubernetes object.
			"version": {Type: schema.TypeString, Computed: true},
		},
		Importer:      &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		CreateContext: createNamed,
		UpdateContext: put,
		ReadContext:   readNamed,
		DeleteContext: remove,
	}
}

func readNamed(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	_ = data.Set("version", newID())
	return read(ctx, data, meta)
}

func createNamed(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	data.SetId(data.Get("metadata.0.namespace").(string) + "/" + data.Get("metadata.0.name").(string))
	_ = data.Set("version", newID())
	diagnostics := put(ctx, data, meta)
	if _, err := os.Stat(meta.(*world).path("crash-after")); err == nil {
		os.Exit(3)
	}
	return diagnostics
}

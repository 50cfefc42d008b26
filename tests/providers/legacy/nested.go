package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

// nested has what providers for Kubernetes have: a block whose arguments exclude each other, and which is recorded with
// empty values for those that are not set; an argument that is true by default; and a write-only argument.
func nested() *schema.Resource {
	text := func() *schema.Schema { return &schema.Schema{Type: schema.TypeString, Optional: true} }
	texts := func() *schema.Schema {
		return &schema.Schema{Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}}
	}
	either := func(other string) *schema.Schema {
		return &schema.Schema{
			Type: schema.TypeString, Optional: true, Computed: other == "prefix", ForceNew: true,
			ConflictsWith: []string{"metadata.0." + other},
		}
	}
	return &schema.Resource{
		Description: "A block with arguments that exclude each other.",
		Schema: map[string]*schema.Schema{
			"metadata": {
				Type: schema.TypeList, Required: true, MaxItems: 1, Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"name": either("prefix"), "prefix": either("name"),
					"labels": texts(), "annotations": texts(),
					"uid": {Type: schema.TypeString, Computed: true},
				}},
			},
			"restart": {
				Type: schema.TypeString, Optional: true, Computed: true,
				ValidateFunc: validation.StringInSlice([]string{"always", "never"}, false),
			},
			"port": {
				Type: schema.TypeList, Optional: true, Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"number":   {Type: schema.TypeInt, Required: true},
					"node":     {Type: schema.TypeInt, Optional: true, Computed: true},
					"protocol": {Type: schema.TypeString, Optional: true, Default: "TCP"},
				}},
			},
			"wait":              {Type: schema.TypeBool, Optional: true, Default: true},
			"text":              text(),
			"secret_wo":         {Type: schema.TypeString, Optional: true, WriteOnly: true, RequiredWith: []string{"secret_wo_version"}},
			"secret_wo_version": {Type: schema.TypeInt, Optional: true, RequiredWith: []string{"secret_wo"}},
		},
		CreateContext: writeNested,
		UpdateContext: writeNested,
		ReadContext:   read,
		DeleteContext: remove,
	}
}

// writeNested records an empty value for each argument that is not set.
func writeNested(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	if data.Id() == "" {
		data.SetId(newID())
	}
	block, _ := data.Get("metadata").([]any)
	metadata, _ := block[0].(map[string]any)
	if metadata["name"] == "" {
		metadata["name"] = metadata["prefix"].(string) + data.Id()
	}
	metadata["uid"] = data.Id()
	_ = data.Set("metadata", []any{metadata})
	ports, _ := data.Get("port").([]any)
	_ = data.Set("port", ports)
	_ = data.Set("restart", data.Get("restart"))
	return put(ctx, data, meta)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// thing has the features of the second SDK: blocks of every kind, values that the provider normalizes (`casing`,
// `document`), zero values for absent ones, timeouts, and an attribute computed from another.
func thing() *schema.Resource {
	block := &schema.Resource{Schema: map[string]*schema.Schema{
		"key":   {Type: schema.TypeString, Required: true},
		"value": {Type: schema.TypeString, Optional: true},
		"port":  {Type: schema.TypeInt, Optional: true, Default: 80},
	}}
	return &schema.Resource{
		Description:   "Blocks of every kind.",
		SchemaVersion: 1,
		StateUpgraders: []schema.StateUpgrader{{
			Version: 0,
			Type:    (&schema.Resource{Schema: map[string]*schema.Schema{"label": {Type: schema.TypeString, Optional: true}}}).CoreConfigSchema().ImpliedType(),
			Upgrade: func(_ context.Context, state map[string]any, _ any) (map[string]any, error) {
				state["name"] = state["label"]
				delete(state, "label")
				return state, nil
			},
		}},
		Timeouts: &schema.ResourceTimeout{Create: schema.DefaultTimeout(time.Minute), Delete: schema.DefaultTimeout(time.Minute)},
		Schema: map[string]*schema.Schema{
			"name":     {Type: schema.TypeString, Required: true, ForceNew: true},
			"text":     {Type: schema.TypeString, Optional: true},
			"enabled":  {Type: schema.TypeBool, Optional: true},
			"size":     {Type: schema.TypeFloat, Optional: true},
			"password": {Type: schema.TypeString, Optional: true, Sensitive: true},
			"tags":     {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			// Stored in lower case; a difference in case is ignored.
			"casing": {
				Type: schema.TypeString, Optional: true,
				StateFunc:        func(value any) string { return strings.ToLower(value.(string)) },
				DiffSuppressFunc: func(_, before, after string, _ *schema.ResourceData) bool { return strings.EqualFold(before, after) },
			},
			// JSON; a difference in spaces is ignored.
			"document": {
				Type: schema.TypeString, Optional: true,
				DiffSuppressFunc: func(_, before, after string, _ *schema.ResourceData) bool { return compact(before) == compact(after) },
			},
			"computed":  {Type: schema.TypeString, Optional: true, Computed: true},
			"name_size": {Type: schema.TypeInt, Computed: true},
			"one":       {Type: schema.TypeList, Optional: true, MaxItems: 1, Elem: block},
			"many":      {Type: schema.TypeList, Optional: true, Elem: block},
			"unordered": {Type: schema.TypeSet, Optional: true, Elem: block},
			"as_attribute": {
				Type: schema.TypeList, Optional: true, Computed: true, ConfigMode: schema.SchemaConfigModeAttr, Elem: block,
			},
		},
		CustomizeDiff: customdiff.ComputedIf("name_size", func(_ context.Context, diff *schema.ResourceDiff, _ any) bool {
			return diff.HasChange("name")
		}),
		Importer:      &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		CreateContext: write,
		UpdateContext: write,
		ReadContext:   read,
		DeleteContext: remove,
	}
}

func compact(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	bytes, _ := json.Marshal(value)
	return string(bytes)
}

func write(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	if data.Id() == "" {
		data.SetId(newID())
	}
	if err := meta.(*world).write(data.Id(), data.Get("text").(string)); err != nil {
		return diag.FromErr(err)
	}
	if data.Get("computed").(string) == "" {
		_ = data.Set("computed", "computed-"+data.Id())
	}
	_ = data.Set("name_size", len(data.Get("name").(string)))
	return read(ctx, data, meta)
}

func read(_ context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	text, exists, err := meta.(*world).read(data.Id(), data.Get("text").(string))
	if err != nil {
		return diag.FromErr(fmt.Errorf("reading %s: %w", data.Id(), err))
	}
	if !exists {
		data.SetId("")
		return nil
	}
	_ = data.Set("text", text)
	return nil
}

func remove(_ context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	return diag.FromErr(meta.(*world).remove(data.Id()))
}

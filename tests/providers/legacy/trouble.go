package main

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// trouble fails on demand, like `corner_trouble`: `error` before the change, `partial`, `panic` and `exit` after it.
func trouble() *schema.Resource {
	what := func() *schema.Schema { return &schema.Schema{Type: schema.TypeString, Optional: true} }
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"text": what(), "on_create": what(), "on_read": what(), "on_update": what(), "on_delete": what(),
		},
		CreateContext: withFailure("on_create", put),
		UpdateContext: withFailure("on_update", put),
		ReadContext:   withFailure("on_read", read),
		DeleteContext: withFailure("on_delete", remove),
	}
}

func put(_ context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	if data.Id() == "" {
		data.SetId(newID())
	}
	return diag.FromErr(meta.(*world).write(data.Id(), data.Get("text").(string)))
}

type operation = func(context.Context, *schema.ResourceData, any) diag.Diagnostics

func withFailure(attribute string, work operation) operation {
	return func(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
		what := data.Get(attribute).(string)
		if meta.(*world).failuresDisabled() {
			what = ""
		}
		if what == "error" {
			return diag.Errorf("it failed as asked")
		}
		diagnostics := work(ctx, data, meta)
		switch what {
		case "partial":
			return append(diagnostics, diag.Errorf("it failed halfway")...)
		case "panic":
			panic("the provider panics as asked")
		case "exit":
			println("giving up as asked")
			os.Exit(3)
		}
		return diagnostics
	}
}

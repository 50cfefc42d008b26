package main

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// trouble fails on demand, as `corner_trouble`: `error` before anything is done, `partial` after the work, `panic` and
// `exit` after the work as well.
func trouble() *schema.Resource {
	what := func() *schema.Schema { return &schema.Schema{Type: schema.TypeString, Optional: true} }
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"text": what(), "on_create": what(), "on_read": what(), "on_update": what(), "on_delete": what(),
		},
		CreateContext: struck("on_create", put),
		UpdateContext: struck("on_update", put),
		ReadContext:   struck("on_read", read),
		DeleteContext: struck("on_delete", remove),
	}
}

func put(_ context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
	if data.Id() == "" {
		data.SetId(draw())
	}
	return diag.FromErr(meta.(*world).write(data.Id(), data.Get("text").(string)))
}

type operation = func(context.Context, *schema.ResourceData, any) diag.Diagnostics

func struck(attribute string, work operation) operation {
	return func(ctx context.Context, data *schema.ResourceData, meta any) diag.Diagnostics {
		what := data.Get(attribute).(string)
		if meta.(*world).peaceful() {
			what = ""
		}
		if what == "error" {
			return diag.Errorf("it failed as asked")
		}
		said := work(ctx, data, meta)
		switch what {
		case "partial":
			return append(said, diag.Errorf("it failed halfway")...)
		case "panic":
			panic("the provider panics as asked")
		case "exit":
			println("giving up as asked")
			os.Exit(3)
		}
		return said
	}
}

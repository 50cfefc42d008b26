package main

import (
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// hashed records a hash of some arguments instead of their values, like the `user_data` of many machines. A hash of the
// hash is another value, so a configuration with the recorded value is planned as a change.
func hashed() *schema.Resource {
	hash := func(forceNew bool) *schema.Schema {
		return &schema.Schema{
			Type: schema.TypeString, Optional: true, ForceNew: forceNew,
			StateFunc: func(value any) string { return "hash(" + value.(string) + ")" },
		}
	}
	return &schema.Resource{
		Schema: map[string]*schema.Schema{
			"text":      {Type: schema.TypeString, Optional: true},
			"note":      hash(false),
			"user_data": hash(true),
		},
		CreateContext: put,
		UpdateContext: put,
		ReadContext:   read,
		DeleteContext: remove,
	}
}

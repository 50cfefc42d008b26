// Command corner is a provider for tests, of protocol 6: it has every corner that a provider can have, and does on
// demand what providers should not do. Its objects are files, so that tests can see, change and remove them.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
)

func main() {
	debug := flag.Bool("debug", false, "print where it listens, and serve whoever comes")
	flag.Parse()
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &corner{} }, providerserver.ServeOpts{
		Address:         "registry.opentofu.org/purlin/corner",
		ProtocolVersion: 6,
		Debug:           *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}

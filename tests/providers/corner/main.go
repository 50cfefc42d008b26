// Command corner is a provider for tests, of protocol 6: it has every corner that a provider can have, and does on
// demand what providers should not do. Its objects are files, so that tests can see, change and remove them.
package main

import (
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

func main() {
	debug := flag.Bool("debug", false, "print where it listens, and serve whoever comes")
	flag.Parse()
	serve := providerserver.NewProtocol6(&corner{})
	factory := func() tfprotov6.ProviderServer { return &generating{serve()} }
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	if err := tf6server.Serve("registry.opentofu.org/purlin/corner", factory, options...); err != nil {
		log.Fatal(err)
	}
}

// Command corner is a provider for tests with protocol 6. It covers the corner cases of providers, and fails on demand.
// Its objects are files, so that tests can read, change and delete them.
package main

import (
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

func main() {
	debug := flag.Bool("debug", false, "print the address, and accept any client")
	flag.Parse()
	hangs("start")
	startSlowly()
	provider := &corner{}
	serve := providerserver.NewProtocol6(provider)
	factory := func() tfprotov6.ProviderServer { return &answers{&generating{serve()}, provider} }
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	if err := tf6server.Serve("registry.opentofu.org/purlin/corner", factory, options...); err != nil {
		log.Fatal(err)
	}
}

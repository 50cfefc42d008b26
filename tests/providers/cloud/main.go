// Command cloud is a provider for tests with protocol 6. It behaves like one of a cloud, but its types are data:
// schema.json. What the cloud decides follows from the arguments, so that two programs that do the same get the same.
//
// Each object is a file objects/TYPE/ID.json in the working directory, which tests can read, change and delete.
package main

import (
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

func main() {
	schema, err := readSchema()
	if err == nil {
		serve := func() tfprotov6.ProviderServer { return &cloud{schema: schema} }
		err = tf6server.Serve("example.com/purlin/cloud", serve)
	}
	if err != nil {
		log.Fatal(err)
	}
}

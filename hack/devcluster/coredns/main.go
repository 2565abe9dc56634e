// Command coredns is CoreDNS with the few plugins a cluster's own DNS needs.
// The stock one links every cloud's client and takes three times as long to build.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

// directives is also the order in which plugins see a query. In the stock one
// template comes before kubernetes; here it is what answers when nobody else did.
var directives = []string{
	"health", "ready", "prometheus", "errors", "log",
	"cache", "loadbalance", "kubernetes", "template",
}

func main() {
	dnsserver.Directives = directives
	coremain.Run()
}

// Command kubernetes is every Kubernetes program a one-node cluster needs in
// one executable: it behaves as the program named by its first argument, or by
// its own file name when it is called through a symbolic link.
//
// One executable instead of seven, because most of what such a program
// consists of is the same client, scheme and server machinery: linked once, it
// is 150 MB and not a gigabyte, and it builds in one go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "time/tzdata" // the scheduler of CronJobs reads time zones

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"context"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

// programs maps the name of a program to what runs it. Each one reads os.Args
// as if it were alone, and its result is the exit code.
var programs = map[string]func() int{
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() int { return cli.Run(kubeproxy.NewProxyCommand()) },
	"kubectl":                 func() int { return cli.Run(kubectlcmd.NewDefaultKubectlCommand()) },
	// etcdmain ends the process by itself when it fails.
	"etcd": func() int { etcdmain.Main(os.Args); return 0 },
}

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	run, found := programs[name]
	if !found && len(os.Args) > 1 {
		name = os.Args[1]
		if run, found = programs[name]; found {
			os.Args = os.Args[1:]
		}
	}
	if !found {
		names := make([]string, 0, len(programs))
		for n := range programs {
			names = append(names, n)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "usage: kubernetes PROGRAM [FLAGS]\nPROGRAM is one of: %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

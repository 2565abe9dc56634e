// Command storage provisions the volumes of a devcluster: it watches claims and
// answers those whose storage class names one of the media in this folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"authstack.dev/authstack/hack/devcluster/storage/local"
)

// medium is something volumes can lie on: one folder each beside this file.
type medium struct {
	// provisioner is the name that storage classes use for it.
	provisioner string
	// open makes it ready to be asked.
	open func(dir, node string) (controller.Provisioner, error)
}

// media lists them. A replicated one (Ceph) is one more entry here.
var media = []medium{
	{local.Name, func(dir, node string) (controller.Provisioner, error) { return local.New(dir, node) }},
}

func main() {
	klog.InitFlags(nil)
	kubeconfig := flag.String("kubeconfig", "", "how to reach the cluster")
	dir := flag.String("dir", "", "where volumes are kept; each medium has a folder in it")
	node := flag.String("node", "", "name of the one node that can use them")
	flag.Parse()
	if err := run(*kubeconfig, *dir, *node); err != nil {
		fmt.Fprintln(os.Stderr, "storage:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, dir, node string) error {
	if dir == "" || node == "" {
		return fmt.Errorf("--dir and --node are needed")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	for _, m := range media {
		provisioner, err := m.open(dir, node)
		if err != nil {
			return fmt.Errorf("%s: %w", m.provisioner, err)
		}
		// One process serves the cluster, so there is nothing to elect.
		go controller.NewProvisionController(ctx, client, m.provisioner, provisioner,
			controller.LeaderElection(false),
			controller.AddFinalizer(true),
		).Run(ctx)
	}
	<-ctx.Done()
	return nil
}

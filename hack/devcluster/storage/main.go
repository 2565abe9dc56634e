// Command storage provisions the volumes of a devcluster: it watches claims and
// answers those whose storage class names one of the media in this folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"authstack.dev/authstack/hack/devcluster/storage/ceph"
	"authstack.dev/authstack/hack/devcluster/storage/local"
)

// options say where things lie.
type options struct {
	kubeconfig string
	// dir is where volumes are kept; each medium has a folder in it.
	dir string
	// node is the name of the one node that can use them.
	node string
	// ceph is the path of ceph.conf; empty if the cluster has no Ceph.
	ceph string
	// run and registry are for the sockets of the CSI driver of Ceph's volumes.
	run, registry string
}

func main() {
	klog.InitFlags(nil)
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the cluster")
	flag.StringVar(&o.dir, "dir", "", "where volumes are kept; each medium has a folder in it")
	flag.StringVar(&o.node, "node", "", "name of the one node that can use them")
	flag.StringVar(&o.ceph, "ceph", "", "ceph.conf of the Ceph to provision from; none if empty")
	flag.StringVar(&o.run, "run", "", "folder for sockets, needed with --ceph")
	flag.StringVar(&o.registry, "kubelet-registry", "", "where the kubelet looks for CSI drivers, needed with --ceph")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "storage:", err)
		os.Exit(1)
	}
}

// serve answers claims until the context ends or a medium fails.
func serve(ctx context.Context, o options) error {
	if o.dir == "" || o.node == "" || o.ceph != "" && (o.run == "" || o.registry == "") {
		return errors.New("--dir and --node are needed, and with --ceph also --run and --kubelet-registry")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)

	directories, err := local.New(o.dir, o.node)
	if err != nil {
		return fmt.Errorf("%s: %w", local.Name, err)
	}
	go provision(ctx, client, local.Name, directories)
	if o.ceph != "" {
		images := ceph.NewProvisioner(o.ceph)
		go provision(ctx, client, ceph.Name, images)
		go func() { failed <- images.Expand(ctx, client) }()
		go func() {
			failed <- ceph.Serve(ctx, o.ceph, o.node, ceph.Places{Volumes: filepath.Join(o.dir, "ceph"), Run: o.run, Registry: o.registry})
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// provision answers the claims of storage classes that name the provisioner.
// One process serves the cluster, so there is nothing to elect.
func provision(ctx context.Context, client kubernetes.Interface, name string, medium controller.Provisioner) {
	controller.NewProvisionController(ctx, client, name, medium,
		controller.LeaderElection(false),
		controller.AddFinalizer(true),
	).Run(ctx)
}

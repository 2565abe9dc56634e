package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"authstack.dev/authstack/hack/devcluster/internal/addon"
	"authstack.dev/authstack/hack/devcluster/internal/cluster"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
	"authstack.dev/authstack/hack/devcluster/internal/ui"
)

const long = `devcluster runs a real one-node Kubernetes ` + cluster.KubernetesVersion + ` on a Debian or Ubuntu machine,
as root, without Docker and without an image registry. Everything is built from
Go modules and Debian packages and cached; only the first run takes minutes.

  devcluster up                        start it, or heal it, and wait until it is ready
  export KUBECONFIG=$(devcluster kubeconfig)
  devcluster load redis postgres:17    make images and bring them into the node
  devcluster addon postgres-operator   Zalando's operator, ready to use
  devcluster up --ceph                 the same with a real Ceph: storage class ceph-block
  devcluster ceph osd stop 1           break it; see devcluster ceph --help
  devcluster down                      leave the machine as it was

The API server runs on the host, the node in namespaces of its own. Programs on
the host reach pods and Services directly, by their addresses.`

type options struct{ state string }

func (o *options) cluster() (*cluster.Cluster, error) {
	l, err := layout.New(o.state)
	if err != nil {
		return nil, err
	}
	return &cluster.Cluster{Layout: l, Progress: ui.New()}, nil
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:               "devcluster",
		Short:             "A real one-node Kubernetes without Docker",
		Long:              long,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&o.state, "state-dir", "",
		"folder of the cluster's state (default $"+layout.StateVariable+" or "+layout.DefaultState+"); two folders, two clusters")
	root.AddCommand(newUp(o), newDown(o), newStatus(o), newLoad(o), newImages(o), newKubeconfig(o), newAddon(o), newCeph(o), newKubectl(o), newEnvtestAssets(o), newSupervise(o))
	return root
}

func newUp(o *options) *cobra.Command {
	var wait, ceph bool
	var with []string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or heal it",
		Long: `Start the cluster. One that is healthy is left alone, in a second or two. One
whose parts died is started again with its data. One that cannot be healed, or
that a reboot ended, is replaced by a new one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			for _, name := range with {
				if err := addon.Known(name); err != nil {
					return err
				}
			}
			if err := c.Up(cmd.Context(), wait || len(with) > 0, ceph); err != nil {
				return err
			}
			for _, name := range with {
				if err := addon.Install(cmd.Context(), c, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until the node and the cluster's DNS are ready")
	cmd.Flags().BoolVar(&ceph, "ceph", false, "also run a real Ceph, and volumes on it: the storage class ceph-block; kept until down")
	cmd.Flags().StringSliceVar(&with, "with", nil, "add-ons to install: "+strings.Join(addon.Names(), ", "))
	return cmd
}

func newDown(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything it left on the machine",
		Long: `Remove the cluster: processes, mounts, namespaces, links, routes, cgroups, volumes
and its state folder. What was built stays in the cache. Safe when nothing is up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return c.Down(cmd.Context())
		},
	}
}

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what runs, where, and whether it is ready; exit code 1 if not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return c.Status(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func newLoad(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE…",
		Short: "Make images and bring them into the node",
		Long: `Make each image unless nothing it is made of has changed, and bring it into the
node's containerd. IMAGE is a name from "devcluster images", as much of one as is
unambiguous (redis, coredns, postgres:17), or the path of an image tarball as
docker save, ko, crane or buildah write it.`,
		Example: "  devcluster load authstack.dev/operator:dev redis ./my-image.tar",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), args...)
		},
	}
}

func newImages(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "List the images that can be made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			builder, err := c.Images()
			if err != nil {
				return err
			}
			for _, name := range builder.Catalog.Names() {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return nil
		},
	}
}

func newKubeconfig(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the administrator's kubeconfig",
		Example: "  export KUBECONFIG=$(devcluster kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			if _, err := os.Stat(c.Layout.Kubeconfig()); err != nil {
				return fmt.Errorf("there is no cluster in %s: run `devcluster up` first", c.Layout.State)
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.Layout.Kubeconfig())
			return nil
		},
	}
}

func newAddon(o *options) *cobra.Command {
	return &cobra.Command{
		Use:       "addon NAME",
		Short:     "Install an add-on and wait until it is ready: " + strings.Join(addon.Names(), ", "),
		Args:      cobra.ExactArgs(1),
		ValidArgs: addon.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return addon.Install(cmd.Context(), c, args[0])
		},
	}
}

func newEnvtestAssets(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "envtest-assets",
		Short:   "Print a folder with kube-apiserver, etcd and kubectl for controller-runtime's envtest",
		Example: "  export KUBEBUILDER_ASSETS=$(devcluster envtest-assets)",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			dir, err := c.EnvtestAssets(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
}

func newKubectl(o *options) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl …",
		Short:              "Run kubectl on this cluster ($" + layout.StateVariable + " chooses another)",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return c.ExecKubectl(args)
		},
	}
}

func newSupervise(o *options) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := layout.New(o.state)
			if err != nil {
				return err
			}
			return supervisor.Run(l)
		},
	}
}

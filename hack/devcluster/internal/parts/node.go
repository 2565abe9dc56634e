package parts

import "fmt"

func (s Setup) kubeletArgs() []string {
	return []string{
		"--config=" + s.config("kubelet.yaml"),
		"--kubeconfig=" + s.config("kubelet.kubeconfig"),
		"--root-dir=" + s.Layout.InState("kubelet"),
		"--cert-dir=" + s.Layout.InState("pki", "kubelet"),
		"--hostname-override=" + NodeName,
		"--node-ip=" + s.Network.Node().String(),
		"--v=1",
	}
}

// Files are the configuration files of the node's parts, by name.
func (s Setup) Files() map[string]string {
	files := map[string]string{
		"kubelet.yaml":               s.kubeletConfig(),
		"kube-proxy.yaml":            s.kubeProxyConfig(),
		"containerd.toml":            s.containerdConfig(),
		"cni/10-devcluster.conflist": s.cniConfig(),
		// Empty but there: pods ask the cluster's DNS, which asks nobody.
		"resolv.conf": "# The cluster's DNS answers for the cluster's names; there is nobody else to ask.\n",
	}
	if s.CephFSID != "" {
		files["ceph.conf"] = s.cephConfig()
	}
	return files
}

func (s Setup) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
containerRuntimeEndpoint: unix://%[2]s
# The machine may mount either version of cgroups.
failCgroupV1: false
cgroupDriver: cgroupfs
# A root of our own, so that what is below it is ours to remove.
cgroupRoot: /%[3]s
failSwapOn: false
# Images come from nowhere else: none may ever be removed to save space.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
  imagefs.inodesFree: 1%%
evictionPressureTransitionPeriod: 10s
clusterDomain: %[4]s
clusterDNS: ["%[5]s"]
resolvConf: %[6]s
podLogsDir: %[7]s
volumePluginDir: %[8]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[9]s}
authorization: {mode: Webhook}
tlsCertFile: %[10]s
tlsPrivateKeyFile: %[11]s
# A devcluster is there to try things out on, quickly: what ended early is started again within
# seconds, and not after up to five minutes.
crashLoopBackOff: {maxContainerRestartPeriod: 5s}
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
`, s.Network.Node(), s.Layout.Socket(), s.Layout.Name(), ClusterDomain, s.Network.DNS(),
		s.config("resolv.conf"), s.Layout.InState("pods"), s.Layout.InState("kubelet-plugins"),
		s.pki("ca.crt"), s.pki("kubelet-server.crt"), s.pki("kubelet-server.key"))
}

func (s Setup) kubeProxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
bindAddress: %[1]s
healthzBindAddress: %[1]s:10256
metricsBindAddress: 127.0.0.1:10249
clientConnection: {kubeconfig: %[2]s}
clusterCIDR: %[3]s
hostnameOverride: %[4]s
# The limits of connection tracking belong to the machine, not to this namespace.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, s.Network.Node(), s.config("kube-proxy.kubeconfig"), s.Network.Pods, NodeName)
}

func (s Setup) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "%[1]s"
# In memory and inside the node's mount namespace: it must not outlive the node.
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing"]

[grpc]
  address = "%[2]s"

[plugins."io.containerd.internal.v1.opt"]
  path = "%[3]s"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[4]s"
  # Without CAP_SYS_RESOURCE a lower score is refused, and no sandbox would start.
  restrict_oom_score_adj = true
  # As in Docker and newer releases: port 53 needs no root.
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "%[5]s"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%[6]s"
`, s.Layout.InState("containerd"), s.Layout.Socket(), s.Layout.InState("containerd", "opt"), s.PauseImage, s.Snapshotter, s.config("cni"))
}

// cniConfig gives each pod a cable and a route of its own instead of a bridge:
// all traffic between pods then passes the node's rules, whether or not the
// kernel can filter on bridges, and Services work between any two of them.
func (s Setup) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "devcluster",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-addresses",
        "ranges": [[{"subnet": "%s"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`, s.Network.Pods)
}

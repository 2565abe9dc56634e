package parts

import "authstack.dev/authstack/hack/devcluster/internal/pki"

func (s Setup) etcdArgs() []string {
	host := s.Network.Host().String()
	peer := "https://" + host + ":2380"
	return []string{
		"--name=" + NodeName,
		"--data-dir=" + s.Layout.InState("etcd"),
		"--listen-client-urls=" + s.etcd(),
		"--advertise-client-urls=" + s.etcd(),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + NodeName + "=" + peer,
		// Pods can reach the host's end of the cable, hence certificates.
		"--cert-file=" + s.pki("etcd.crt"), "--key-file=" + s.pki("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file=" + s.pki("ca.crt"),
		"--peer-cert-file=" + s.pki("etcd.crt"), "--peer-key-file=" + s.pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + s.pki("ca.crt"),
		// A cluster that a reboot ends anyway needs no disk to wait for, and
		// what is measured on this machine is not to share the disk with it.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func (s Setup) apiserverArgs() []string {
	return []string{
		"--bind-address=" + s.Network.Host().String(),
		"--advertise-address=" + s.Network.Host().String(),
		"--secure-port=" + APIPort,
		"--service-cluster-ip-range=" + s.Network.Services.String(),
		"--etcd-servers=" + s.etcd(),
		"--etcd-cafile=" + s.pki("ca.crt"), "--etcd-certfile=" + s.pki("etcd-client.crt"), "--etcd-keyfile=" + s.pki("etcd-client.key"),
		"--tls-cert-file=" + s.pki("apiserver.crt"), "--tls-private-key-file=" + s.pki("apiserver.key"),
		"--client-ca-file=" + s.pki("ca.crt"),
		// Without these, logs and exec are refused by the kubelet.
		"--kubelet-client-certificate=" + s.pki("apiserver-kubelet.crt"), "--kubelet-client-key=" + s.pki("apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + s.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		// Off unless asked for; what a namespace forbids stays forbidden there.
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc." + ClusterDomain,
		"--service-account-key-file=" + s.pki("service-account.pub"),
		"--service-account-signing-key-file=" + s.pki("service-account.key"),
		"--requestheader-client-ca-file=" + s.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + s.pki("front-proxy.crt"), "--proxy-client-key-file=" + s.pki("front-proxy.key"),
		// No kube-proxy on the host, so aggregated APIs are reached by pod address.
		"--enable-aggregator-routing=true",
		"--profiling=false",
		"--v=1",
	}
}

func (s Setup) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + s.config("controller-manager.kubeconfig"),
		"--authentication-kubeconfig=" + s.config("controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + s.config("controller-manager.kubeconfig"),
		"--bind-address=" + s.Network.Host().String(),
		"--cert-dir=" + s.Layout.InState("pki", "controller-manager"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--root-ca-file=" + s.pki("ca.crt"),
		"--service-account-private-key-file=" + s.pki("service-account.key"),
		"--cluster-signing-cert-file=" + s.pki("ca.crt"), "--cluster-signing-key-file=" + s.pki("ca.key"),
		"--use-service-account-credentials=true",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + s.Network.Pods.String(),
		// One node: it gets everything.
		"--node-cidr-mask-size-ipv4=18",
		"--service-cluster-ip-range=" + s.Network.Services.String(),
		"--flex-volume-plugin-dir=" + s.Layout.InState("kubelet-plugins"),
		// One of each, so there is nothing to elect, and a restarted one does
		// not wait for its predecessor's lease to end.
		"--leader-elect=false",
	}
}

func (s Setup) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + s.config("scheduler.kubeconfig"),
		"--authentication-kubeconfig=" + s.config("scheduler.kubeconfig"),
		"--authorization-kubeconfig=" + s.config("scheduler.kubeconfig"),
		"--bind-address=" + s.Network.Host().String(),
		"--cert-dir=" + s.Layout.InState("pki", "scheduler"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--leader-elect=false",
	}
}

// Certificates lists who gets one from the cluster's authority.
func (s Setup) Certificates() map[string]pki.Subject {
	host := s.Network.Host().String()
	return map[string]pki.Subject{
		"apiserver": {Name: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + ClusterDomain,
			s.Network.KubernetesService().String(), host, "localhost", "127.0.0.1",
		}},
		"apiserver-kubelet":  {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"etcd":               {Name: "etcd", Hosts: []string{host}},
		"etcd-client":        {Name: "kube-apiserver-etcd-client"},
		"admin":              {Name: "kubernetes-admin", Groups: []string{"system:masters"}},
		"controller-manager": {Name: "system:kube-controller-manager"},
		"scheduler":          {Name: "system:kube-scheduler"},
		"kube-proxy":         {Name: "system:kube-proxy"},
		"storage":            {Name: "devcluster-storage", Groups: []string{"system:masters"}},
		"kubelet":            {Name: "system:node:" + NodeName, Groups: []string{"system:nodes"}},
		"kubelet-server":     {Name: NodeName, Hosts: []string{NodeName, s.Network.Node().String()}},
	}
}

// Kubeconfigs lists which of them get a kubeconfig of their own.
func (s Setup) Kubeconfigs() []string {
	return []string{"controller-manager", "scheduler", "kube-proxy", "storage", "kubelet"}
}

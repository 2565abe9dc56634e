package v1alpha1

// AuthentikSpec is an authentik installation.
type AuthentikSpec struct {
	// Version is the authentik release, for example 2026.8.3. Known are 2025.2 to 2026.8. authentik
	// is upgraded one release at a time and never downgraded.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(2025[.](2|4|6|8|10|12)|2026[.](2|5|8))[.][0-9]{1,3}$')",message="version must be a full authentik release of 2025.2, 2025.4, 2025.6, 2025.8, 2025.10, 2025.12, 2026.2, 2026.5 or 2026.8, for example 2026.8.3"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^20[0-9]{2}[.][0-9]{1,2}[.][0-9]{1,3}$') || int(self.split('.')[0]) * 1000000 + int(self.split('.')[1]) * 1000 + int(self.split('.')[2]) >= int(oldSelf.split('.')[0]) * 1000000 + int(oldSelf.split('.')[1]) * 1000 + int(oldSelf.split('.')[2])",message="authentik cannot be downgraded, its migrations only go forward; restore a backup into a new AuthStack of the older version instead"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^20[0-9]{2}[.][0-9]{1,2}[.][0-9]{1,3}$') || !(self.substring(0, self.lastIndexOf('.')) in {'2025.2':0,'2025.4':1,'2025.6':2,'2025.8':3,'2025.10':4,'2025.12':5,'2026.2':6,'2026.5':7,'2026.8':8}) || {'2025.2':0,'2025.4':1,'2025.6':2,'2025.8':3,'2025.10':4,'2025.12':5,'2026.2':6,'2026.5':7,'2026.8':8}[self.substring(0, self.lastIndexOf('.'))] - {'2025.2':0,'2025.4':1,'2025.6':2,'2025.8':3,'2025.10':4,'2025.12':5,'2026.2':6,'2026.5':7,'2026.8':8}[oldSelf.substring(0, oldSelf.lastIndexOf('.'))] <= 1",message="authentik is upgraded one release at a time: 2025.2, 2025.4, 2025.6, 2025.8, 2025.10, 2025.12, 2026.2, 2026.5, 2026.8; write the next release, wait until the stack is Ready, then go on"
	Version string `json:"version"`

	// Image replaces the image, with its tag or digest. Default: the operator's authentik repository
	// with the version as tag.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// Server is the part that answers people. Default: two replicas.
	// +optional
	Server WorkloadSpec `json:"server,omitempty"`

	// Worker is the part that runs tasks, migrations and blueprints. Default: one replica.
	// +optional
	Worker WorkloadSpec `json:"worker,omitempty"`

	// Blueprints are ConfigMaps of this namespace whose *.yaml keys authentik applies.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Blueprints []LocalReference `json:"blueprints,omitempty"`

	// EnvFromSecrets are Secrets of this namespace whose keys become environment variables of server and
	// worker, a later Secret over an earlier one: S3 (AUTHENTIK_STORAGE__*), mail (AUTHENTIK_EMAIL__*), and what
	// blueprints read with !Env. What the operator sets itself (the database, Redis, listen addresses, the secret
	// key, the first administrator, the base URL) is refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	EnvFromSecrets []LocalReference `json:"envFromSecrets,omitempty"`

	// Uploads says where uploaded files (icons, logos, flow backgrounds) are kept. Default: in each Pod by
	// itself, where they are lost at its end; so keep them on a claim, or in S3 by envFromSecrets.
	// +optional
	Uploads *AuthentikUploads `json:"uploads,omitempty"`
}

// AuthentikUploads is a place for uploaded files that outlives Pods.
type AuthentikUploads struct {
	// ClaimName names a PersistentVolumeClaim of this namespace that server and worker mount: from 2025.12 at
	// /data; before, its folder media at /media, so that an upgrade finds the files where it looks for them.
	// With ReadWriteMany the Pods may be on several nodes, with ReadWriteOnce they are all put on one.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="claimName must be the name of a PersistentVolumeClaim of this namespace, for example sso-uploads"
	ClaimName string `json:"claimName"`
}

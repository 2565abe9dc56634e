package v1alpha1

import corev1 "k8s.io/api/core/v1"

// AutheliaSpec is an Authelia installation.
//
// +kubebuilder:validation:XValidation:rule="has(self.users) != has(self.ldap)",message="set exactly one of spec.authelia.users (a users file) and spec.authelia.ldap"
type AutheliaSpec struct {
	// Version is the Authelia release, for example 4.39.20. Known are 4.38 and 4.39.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^4[.](38|39)[.][0-9]{1,3}$')",message="version must be a full Authelia release of 4.38 or 4.39, for example 4.39.20"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^4[.][0-9]{1,3}[.][0-9]{1,3}$') || int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",message="Authelia cannot be downgraded over a minor release, its storage migrations only go forward; restore a backup into a new AuthStack instead"
	Version string `json:"version"`

	// Image replaces the image, with its tag or digest. Default: the operator's Authelia repository
	// with the version as tag.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// Replicas is the number of Pods. More than one needs sessions in Redis. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	Replicas *int32 `json:"replicas,omitempty"`

	// Resources are the requests and limits of each Pod. The memory limit must hold the password
	// hashes that run at once, 64 MiB each by Authelia's default. Default: 100m CPU, 256Mi requested, 512Mi limit.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Users is a users file kept in a Secret. Exactly one of users and ldap.
	// +optional
	Users *AutheliaUsers `json:"users,omitempty"`

	// LDAP is a directory that knows the users. Exactly one of users and ldap.
	// +optional
	LDAP *AutheliaLDAP `json:"ldap,omitempty"`

	// AccessControl says who may reach what. Default: one factor for every name below the host's
	// parent domain.
	// +optional
	AccessControl *AutheliaAccessControl `json:"accessControl,omitempty"`

	// SMTP is the server that Authelia sends mail with. Default: none; mail is written into a file of the Pod.
	// +optional
	SMTP *AutheliaSMTP `json:"smtp,omitempty"`

	// ExtraConfig are ConfigMaps and Secrets of this namespace whose key configuration.yml is read by Authelia
	// after the rendered configuration; later files win, and a list replaces the one before. What is secret (an
	// OpenID Connect issuer's keys) belongs into a Secret. Access rules are written in accessControl, not here.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ExtraConfig []AutheliaExtraConfig `json:"extraConfig,omitempty"`
}

// AutheliaExtraConfig names a file of configuration.
type AutheliaExtraConfig struct {
	// Kind is ConfigMap or Secret. Default: ConfigMap.
	// +optional
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind ExtraConfigKind `json:"kind,omitempty"`

	// Name of the ConfigMap or Secret; its key is configuration.yml.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ExtraConfigKind is the kind of the object that a file of configuration is in.
type ExtraConfigKind string

// The kinds that a file of configuration can be in.
const (
	// ExtraConfigMap is a ConfigMap.
	ExtraConfigMap ExtraConfigKind = "ConfigMap"
	// ExtraConfigSecret is a Secret.
	ExtraConfigSecret ExtraConfigKind = "Secret"
)

// AutheliaSMTP is a mail server.
//
// +kubebuilder:validation:XValidation:rule="has(self.username) == has(self.passwordSecretRef)",message="set smtp.username and smtp.passwordSecretRef together, or neither for a server that asks for no login"
type AutheliaSMTP struct {
	// Address of the server: smtp://HOST[:25] and submission://HOST[:587] begin in the clear and insist on
	// STARTTLS, submissions://HOST[:465] is encrypted from the start.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(smtp|submissions?)://([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?|[[][0-9a-fA-F:.]+[]])(:[1-9][0-9]{0,4})?$') && (!self.matches(':[0-9]+$') || int(self.substring(self.lastIndexOf(':') + 1)) <= 65535)",message="address must be smtp://HOST:PORT, submission://HOST:PORT or submissions://HOST:PORT, for example submissions://mail.example.com:465"
	Address string `json:"address"`

	// Sender is who mail is from, for example Authelia <authelia@example.com>.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^<>@]*<[^<>@ ]+@[^<>@ ]+>|[^<>@ ]+@[^<>@ ]+)$')",message="sender must be ADDRESS or NAME <ADDRESS>, for example Authelia <authelia@example.com>"
	Sender string `json:"sender"`

	// Username to log in with. Default: no login.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`

	// PasswordSecretRef names the key of a Secret of this namespace with the password of username.
	// +optional
	PasswordSecretRef *SecretKeyReference `json:"passwordSecretRef,omitempty"`
}

// AutheliaUsers is a users file.
type AutheliaUsers struct {
	// SecretName names a Secret of this namespace whose key users_database.yml is Authelia's users
	// file. Default: a Secret made by the operator with one user, admin, and a generated password.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// AutheliaLDAP is a directory.
type AutheliaLDAP struct {
	// Address of the directory, for example ldaps://ldap.example.com.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^ldaps?://[^ /]+$')",message="address must be ldap://HOST[:PORT] or ldaps://HOST[:PORT]"
	Address string `json:"address"`

	// Implementation is the kind of directory. Default: custom.
	// +optional
	// +kubebuilder:validation:Enum=custom;activedirectory;rfc2307bis;freeipa;lldap;glauth
	Implementation string `json:"implementation,omitempty"`

	// BaseDN is where the search for users and groups starts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	BaseDN string `json:"baseDN"`

	// User is the distinguished name that Authelia binds as.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user"`

	// PasswordSecretRef names the key of a Secret with the password of User.
	// +required
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef"`
}

// AutheliaAccessControl is Authelia's access_control section as far as it is typed here.
//
// +kubebuilder:validation:XValidation:rule="(has(self.rules) && size(self.rules) > 0) || (has(self.defaultPolicy) && self.defaultPolicy in ['one_factor', 'two_factor'])",message="without rules Authelia only starts with a default policy that lets people in; add rules, write defaultPolicy: one_factor or two_factor, or remove accessControl"
type AutheliaAccessControl struct {
	// DefaultPolicy is used where no rule matches. Default: deny.
	// +optional
	DefaultPolicy AccessPolicy `json:"defaultPolicy,omitempty"`

	// Rules are tried in order; the first that matches decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Rules []AutheliaAccessRule `json:"rules,omitempty"`
}

// AccessPolicy is an Authelia policy.
// +kubebuilder:validation:Enum=deny;bypass;one_factor;two_factor
type AccessPolicy string

// AutheliaAccessRule is one rule of the access control.
//
// +kubebuilder:validation:XValidation:rule="has(self.domain) || has(self.domainRegex)",message="a rule needs domain or domainRegex, for example domain: ['*.example.com']"
// +kubebuilder:validation:XValidation:rule="self.policy != 'bypass' || !has(self.subject)",message="a bypass rule cannot have a subject, Authelia does not know who asks; remove subject or write policy: one_factor"
type AutheliaAccessRule struct {
	// Domain names, exact or with a leading *. wildcard. At least one of domain and domainRegex.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Domain []string `json:"domain,omitempty"`

	// DomainRegex are regular expressions for names, in Go's notation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	DomainRegex []string `json:"domainRegex,omitempty"`

	// Policy that applies.
	// +required
	Policy AccessPolicy `json:"policy"`

	// Subject limits the rule to users (user:NAME) or groups (group:NAME).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^(user|group|oauth2:client):.'))",message="a subject must be user:NAME, group:NAME or oauth2:client:ID, for example group:admins"
	Subject []string `json:"subject,omitempty"`

	// Resources limits the rule to paths that match one of these regular expressions.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Resources []string `json:"resources,omitempty"`

	// Methods limits the rule to HTTP methods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=GET;HEAD;POST;PUT;PATCH;DELETE;TRACE;CONNECT;OPTIONS;COPY;LOCK;MKCOL;MOVE;PROPFIND;PROPPATCH;UNLOCK
	Methods []string `json:"methods,omitempty"`

	// Networks limits the rule to clients with these addresses: an IP address or a CIDR range.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(n, isIP(n) || isCIDR(n))",message="a network must be an IP address or a CIDR range, for example 10.0.0.0/8"
	Networks []string `json:"networks,omitempty"`
}

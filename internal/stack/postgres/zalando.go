package postgres

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// zalando is a cluster of Zalando's postgres-operator (facts/postgres-ceph.md A).
type zalando struct {
	st   *v1alpha1.AuthStack
	spec v1alpha1.ZalandoPostgres
}

func (zalando) name() string { return "zalando" }
func (z zalando) major() int { return majorOf(z.spec.Version) }

// claims of the operator: pgdata-<cluster>-<n> (A5).
func (z zalando) claims() []string {
	names := make([]string, 0, instances(z.spec))
	for i := range instances(z.spec) {
		names = append(names, fmt.Sprintf("pgdata-%s-%d", ClusterName(z.st), i))
	}
	return names
}

func instances(spec v1alpha1.ZalandoPostgres) int32 { return ptr.Deref(spec.Instances, 2) }

// ClusterName of the postgresql resource; also the name of its StatefulSet and of the Service of its
// primary. At most 58 characters (A1): the API limits the stack's name to 40.
func ClusterName(st *v1alpha1.AuthStack) string { return part.Name(st, "postgres") }

// ZalandoSecret is the name of the Secret that the operator makes for a role (A5).
func ZalandoSecret(st *v1alpha1.AuthStack, role string) string {
	return fmt.Sprintf("%s.%s.credentials.postgresql.acid.zalan.do", strings.ReplaceAll(role, "_", "-"), ClusterName(st))
}

func (z zalando) secret(role string) string { return ZalandoSecret(z.st, role) }

func (z zalando) plan(in part.Input, order order) (Result, error) {
	if !in.Facts.ZalandoInstalled {
		return Result{State: part.Stalled(v1alpha1.ReasonPostgresOperatorMissing,
			"the resource postgresqls.acid.zalan.do is not served: install Zalando's postgres-operator 1.15 or later "+
				"(helm repository https://opensource.zalando.com/postgres-operator/charts/postgres-operator), or write spec.postgres.standalone in a new AuthStack")}, nil
	}
	secretName := ZalandoSecret(z.st, order.role)
	result := Result{Objects: []client.Object{z.cluster(order)}}
	secret := in.Facts.Secrets[secretName]
	if len(secret["username"]) > 0 && len(secret["password"]) > 0 {
		result.Database = &part.Database{
			Target: part.DatabaseTarget{
				Host: ClusterName(z.st) + "." + z.st.Namespace + ".svc", Port: Port, Database: order.database,
				User: string(secret["username"]), Password: string(secret["password"]), SSLMode: "require",
			},
			ProductHost: ClusterName(z.st),
			SecretName:  secretName, UsernameKey: "username", PasswordKey: "password",
		}
	}
	result.State = z.state(in, result.Database != nil, secretName)
	return result, nil
}

// state by the operator's word. Running does not mean that parameters are in force (A2): that is the
// tuning phase's question.
func (z zalando) state(in part.Input, opened bool, secretName string) part.State {
	word := in.Facts.Zalando
	workload, found := in.Facts.Workloads[ClusterName(z.st)]
	pods := part.ObservedState(workload, found, "StatefulSet", ClusterName(z.st))
	suffix := ""
	if !pods.Ready && pods.Reason == v1alpha1.ReasonPodsFailing {
		suffix = "; " + pods.Message
	}
	switch word {
	case "Running":
		if !opened {
			return part.Progressing("waiting for Zalando's operator to make the Secret " + secretName)
		}
		return part.Ready("")
	case "CreateFailed", "UpdateFailed", "SyncFailed":
		return part.Waiting(v1alpha1.ReasonPostgresOperatorFailed, fmt.Sprintf(
			"Zalando's operator reports %s for the cluster %s; its log says why%s", word, ClusterName(z.st), suffix))
	case "Invalid":
		return part.Stalled(v1alpha1.ReasonPostgresOperatorFailed, fmt.Sprintf(
			"Zalando's operator refuses the cluster %s as Invalid: with enable_team_id_clustername_prefix its name must start with the team, so set spec.postgres.zalando.teamID to %q, or switch that option off", ClusterName(z.st), z.st.Name))
	case "":
		return part.Progressing(fmt.Sprintf("waiting for Zalando's operator to take up the cluster %s; is it running and watching namespace %s?", ClusterName(z.st), z.st.Namespace))
	}
	return part.Progressing(fmt.Sprintf("Zalando's operator says %s of the cluster %s%s", word, ClusterName(z.st), suffix))
}

func (z zalando) cluster(order order) *unstructured.Unstructured {
	parameters := map[string]any{}
	for name, value := range order.settings.Server() {
		// Numbers and booleans are refused: values are strings (A1).
		parameters[name] = value
	}
	if _, given := parameters["password_encryption"]; !given {
		// Zalando's operator stores md5 otherwise (A4), which libraries in FIPS mode refuse and
		// PostgreSQL 18 warns of; Spilo's pg_hba takes SCRAM verifiers under md5.
		parameters["password_encryption"] = "scram-sha-256"
	}
	volume := map[string]any{"size": order.size.String()}
	if order.className != "" {
		volume["storageClass"] = order.className
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "acid.zalan.do/v1",
		"kind":       "postgresql",
		"spec": map[string]any{
			"teamId":            cmp.Or(z.spec.TeamID, "authstack"),
			"numberOfInstances": int64(instances(z.spec)),
			"users":             map[string]any{order.role: []any{}},
			"databases":         map[string]any{order.database: order.role},
			"postgresql":        map[string]any{"version": cmp.Or(z.spec.Version, defaultMajor), "parameters": parameters},
			"volume":            volume,
			"resources": map[string]any{
				"requests": quantities(order.resources.Requests),
				"limits":   quantities(order.resources.Limits),
			},
			// Written out, since they are compared at each sync and absence would mean them anyway (A3).
			"patroni": map[string]any{"ttl": int64(30), "loop_wait": int64(10), "retry_timeout": int64(10)},
			// The operator's own defaults are true where no configuration says otherwise (A6).
			"enableMasterLoadBalancer":  false,
			"enableReplicaLoadBalancer": false,
		},
	}}
	meta := part.Retained(z.st, part.Meta(z.st, ClusterName(z.st), part.Labels(z.st, "postgres", part.ComponentDatabase, cmp.Or(z.spec.Version, defaultMajor))))
	cluster.SetName(meta.Name)
	cluster.SetNamespace(meta.Namespace)
	cluster.SetLabels(meta.Labels)
	cluster.SetAnnotations(meta.Annotations)
	return cluster
}

// quantities that the operator's resource description knows.
func quantities(list corev1.ResourceList) map[string]any {
	out := map[string]any{}
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, "hugepages-2Mi", "hugepages-1Gi":
			out[string(name)] = quantity.String()
		}
	}
	return out
}

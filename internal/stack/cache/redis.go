package cache

import (
	"cmp"
	"embed"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// RedisPort is where Redis listens.
const RedisPort = 6379

const (
	// redisUID is the uid of redis in the official images.
	redisUID    = 999
	dataMount   = "/data"
	configMount = "/etc/authstack"
	secretMount = "/run/secrets/authstack"
	runMount    = "/run/redis"
)

// redisNeeds are documented in the API.
var redisNeeds = part.Needs{CPU: "50m", Memory: "128Mi", MemoryLimit: "256Mi"}

//go:embed scripts
var scripts embed.FS

// RedisName of the StatefulSet, Service, ConfigMap and Secret.
func RedisName(st *v1alpha1.AuthStack) string { return part.Name(st, "redis") }

func redisSpec(st *v1alpha1.AuthStack) v1alpha1.RedisCache {
	if st.Spec.Cache != nil && st.Spec.Cache.Redis != nil {
		return *st.Spec.Cache.Redis
	}
	return v1alpha1.RedisCache{}
}

// appendOnly as given, or every second where losing the data logs people out, or not at all.
func appendOnly(spec v1alpha1.RedisCache, product part.Product) v1alpha1.RedisAppendOnly {
	if spec.AppendOnly != "" {
		return spec.AppendOnly
	}
	if product.CacheMustSurvive {
		return v1alpha1.RedisAppendEverySecond
	}
	return v1alpha1.RedisAppendDisabled
}

// redis plans a Redis of the stack's own.
func redis(in part.Input, product part.Product, class string) (Result, error) {
	st, spec := in.Stack, redisSpec(in.Stack)
	name := RedisName(st)
	keep := appendOnly(spec, product)
	labels := part.Labels(st, "redis", part.ComponentCache, "")
	selector := part.Selector(st, "redis", part.ComponentCache)
	resources := part.Resources(spec.Resources, redisNeeds)

	meta := part.Meta(st, name, labels)
	if keep != v1alpha1.RedisAppendDisabled {
		meta = part.Retained(st, meta)
	}
	secret, err := part.GeneratedSecret(in, meta, part.Random("password", 40))
	if err != nil {
		return Result{}, err
	}
	config := part.NewConfigMap(part.Meta(st, name, labels), map[string]string{
		"redis.conf": configuration(keep, resources.Limits.Memory().Value()),
		"start.sh":   script("start.sh"),
		"ready.sh":   script("ready.sh"),
	})

	data := part.Scratch(part.ClaimVolume, "1Gi")
	volumes := []corev1.Volume{
		part.FromConfigMap("config", config.Name),
		part.FromSecret("password", secret.Name, "password"),
		part.SharedMemory("run", 1<<20),
	}
	var templates []corev1.PersistentVolumeClaim
	var grown *corev1.PersistentVolumeClaim
	// A StatefulSet that exists keeps the volume that it was made with, or its absence.
	exists, claim := part.HasClaim(in, name)
	if !exists {
		claim = keep != v1alpha1.RedisAppendDisabled
	}
	if !claim {
		volumes = append(volumes, data)
	} else {
		var template corev1.PersistentVolumeClaim
		template, grown = part.Claims(in, name, part.ClaimLabels(st, "redis", part.ComponentCache), class, part.QuantityOr(spec.Size, "1Gi"))
		templates = append(templates, template)
	}
	ready := part.ExecProbe("/bin/sh", configMount+"/ready.sh")
	pod := part.Pod{
		UserID: redisUID, GracePeriodSeconds: 30, Labels: labels, Selector: selector,
		ChecksumOfConfig: part.Checksum(append(part.Flatten(config.Data), part.Flatten(secret.Data)...)...),
		Container: corev1.Container{
			Name:      "redis",
			Image:     cmp.Or(spec.Image, in.Images.OrDefault().Redis),
			Command:   []string{"/bin/sh", configMount + "/start.sh"},
			Ports:     []corev1.ContainerPort{part.Port("redis", RedisPort)},
			Resources: resources,
			VolumeMounts: []corev1.VolumeMount{
				part.Mount(part.ClaimVolume, dataMount, false),
				part.Mount("config", configMount, true),
				part.Mount("password", secretMount, true),
				part.Mount("run", runMount, false),
			},
			StartupProbe:   part.Probe(ready, 2, 3, 60),
			ReadinessProbe: part.Probe(ready, 5, 3, 3),
			LivenessProbe:  part.Probe(ready, 10, 3, 6),
		},
		Volumes: volumes,
	}
	set := part.StatefulSet(st, part.Meta(st, name, labels), selector, pod.Template(), templates...)
	result := Result{
		Redis: &part.Redis{Host: name, IP: in.Facts.ServiceIPs[name], Port: RedisPort, SecretName: name, PasswordKey: "password"},
		State: part.WorkloadState(in.Facts.Workloads, set),
		Objects: []client.Object{
			secret,
			config,
			part.Service(part.Meta(st, name, labels), selector, part.ServicePort("redis", RedisPort)),
			part.AllowIngress(part.Meta(st, name, labels), selector, "redis", part.ProductPeer(st, product.Name)),
			set,
		},
	}
	if grown != nil {
		result.Objects = append(result.Objects, grown)
	}
	if !claim && keep != v1alpha1.RedisAppendDisabled {
		result.State = part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("Redis was made without a volume, and a StatefulSet cannot be given one; write appendOnly: Disabled in spec.cache.redis, "+
			"or delete the StatefulSet %s, upon which it is made anew with a volume and without what it holds now", name))
	}
	return result, nil
}

// configuration of Redis, without its password. Three quarters of the memory limit are for data: the
// rest is for buffers, and for the copy that rewriting the append-only file makes.
//
// Nothing is ever evicted. With Authelia every key is a session, and an evicted one logs somebody out
// without a trace; with authentik before 2025.10 the same Redis carries the task queue and websocket
// groups (facts/authentik.md 1.1), where an evicted key is a lost task. A full Redis refuses writes,
// which is loud.
func configuration(keep v1alpha1.RedisAppendOnly, memoryLimit int64) string {
	appendOnly, fsync := "yes", "everysec"
	switch keep {
	case v1alpha1.RedisAppendAlways:
		fsync = "always"
	case v1alpha1.RedisAppendDisabled:
		appendOnly = "no"
	}
	conf := "# Rendered by authstack; changes are overwritten. The password is added at start.\n"
	for _, line := range [][2]string{
		{"bind", "* -::*"},
		{"port", strconv.Itoa(RedisPort)},
		{"protected-mode", "yes"},
		{"daemonize", "no"},
		{"dir", dataMount},
		{"maxmemory", strconv.FormatInt(memoryLimit/4*3, 10)},
		{"maxmemory-policy", "noeviction"},
		{"appendonly", appendOnly},
		{"appendfsync", fsync},
		{"save", `""`},
		{"tcp-keepalive", "60"},
		{"timeout", "0"},
		// Commands that stop Redis or show its memory are no business of a product.
		{"rename-command", `DEBUG ""`},
		{"rename-command", `SHUTDOWN ""`},
	} {
		conf += line[0] + " " + line[1] + "\n"
	}
	return conf
}

func script(name string) string {
	content, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(fmt.Sprintf("the script %s is compiled in: %v", name, err))
	}
	return string(content)
}

package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/kube"
	"authstack.dev/authstack/internal/stack"
	"authstack.dev/authstack/internal/stack/storage"
)

// gather fills the facts and builds the plan. It is built twice: the first one says how to reach the
// database, the second one knows what the database answered.
func (r *AuthStackReconciler) gather(ctx context.Context, s *scope) error {
	s.facts = facts.Stack{Now: s.now}
	for _, ask := range []func(context.Context, *scope) error{
		r.askZalando, r.askStorageClasses, r.askSecrets, r.askConfigMaps, r.askWorkloads, r.askServices, r.askVolumes, r.askClaims, r.askCeph,
	} {
		if err := ask(ctx, s); err != nil {
			return err
		}
	}
	if idp := s.stack.Status.IdentityProvider; idp != nil {
		s.facts.RunningVersion, s.facts.MigratedVersion = idp.Version, idp.MigratedVersion
	}
	if err := r.build(s); err != nil {
		return err
	}
	if r.askDatabase(ctx, s) {
		return r.build(s)
	}
	return nil
}

func (r *AuthStackReconciler) build(s *scope) error {
	plan, err := stack.Build(stack.Input{Stack: s.stack, Facts: s.facts, Images: r.Images, OperatorNamespace: r.OperatorNamespace, Random: r.Random})
	if err != nil {
		return err
	}
	s.plan = plan
	if plan.DatabaseTarget != nil {
		s.redactor.AddString(plan.DatabaseTarget.Password)
	}
	return nil
}

const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

func (r *AuthStackReconciler) askStorageClasses(ctx context.Context, s *scope) error {
	var list storagev1.StorageClassList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	for _, class := range list.Items {
		s.facts.StorageClasses = append(s.facts.StorageClasses, facts.StorageClass{
			Name: class.Name, Provisioner: class.Provisioner, Parameters: class.Parameters,
			WaitForFirstConsumer: class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
			Default:              class.Annotations[defaultClassAnnotation] == "true",
			RetainsVolumes:       class.ReclaimPolicy != nil && *class.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain,
			Owner:                class.Annotations[storage.OwnerAnnotation],
		})
	}
	slices.SortFunc(s.facts.StorageClasses, func(a, b facts.StorageClass) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return nil
}

func (r *AuthStackReconciler) askSecrets(ctx context.Context, s *scope) error {
	s.facts.Secrets = map[string]map[string][]byte{}
	for _, name := range stack.SecretNames(s.stack) {
		secret := &corev1.Secret{}
		found, err := r.get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, secret)
		if err != nil {
			return fmt.Errorf("reading Secret %s: %w", name, err)
		}
		if !found {
			// An operator may have died while it made the Secret anew; then a copy holds its values.
			found, err = r.get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: kube.ReplacementName(name)}, secret)
			if err != nil {
				return fmt.Errorf("reading Secret %s: %w", kube.ReplacementName(name), err)
			}
			found = found && kube.IsReplacement(secret, name, s.stack.Name)
		}
		if !found {
			continue
		}
		s.facts.Secrets[name] = secret.Data
		if s.facts.Secrets[name] == nil {
			s.facts.Secrets[name] = map[string][]byte{}
		}
		s.redactor.Add(secret.Data)
	}
	return nil
}

func (r *AuthStackReconciler) askConfigMaps(ctx context.Context, s *scope) error {
	s.facts.ConfigMaps = map[string]map[string]string{}
	for _, name := range stack.ConfigMapNames(s.stack) {
		config := &corev1.ConfigMap{}
		found, err := r.get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, config)
		if err != nil {
			return fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		if !found {
			continue
		}
		s.facts.ConfigMaps[name] = config.Data
		if s.facts.ConfigMaps[name] == nil {
			s.facts.ConfigMaps[name] = map[string]string{}
		}
	}
	return nil
}

func (r *AuthStackReconciler) askServices(ctx context.Context, s *scope) error {
	s.facts.ServiceIPs = map[string]string{}
	for _, name := range stack.ServiceNames(s.stack) {
		service := &corev1.Service{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, service)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Service %s: %w", name, err)
		}
		if err == nil && service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone {
			s.facts.ServiceIPs[name] = service.Spec.ClusterIP
		}
	}
	return nil
}

func (r *AuthStackReconciler) askVolumes(ctx context.Context, s *scope) error {
	for _, name := range stack.Claims(s.stack) {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, claim)
		if apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "" {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
		}
		volume := &corev1.PersistentVolume{}
		err = r.Reader.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, volume)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading PersistentVolume %s: %w", claim.Spec.VolumeName, err)
		}
		s.facts.Volumes = append(s.facts.Volumes, volumeFact(name, volume))
	}
	return nil
}

// askClaims asks for the claims that the spec names.
func (r *AuthStackReconciler) askClaims(ctx context.Context, s *scope) error {
	s.facts.Claims = map[string]facts.Claim{}
	for _, name := range stack.GivenClaims(s.stack) {
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: s.stack.Namespace, Name: name}, claim)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
		}
		fact := facts.Claim{}
		for _, mode := range claim.Spec.AccessModes {
			fact.AccessModes = append(fact.AccessModes, string(mode))
		}
		s.facts.Claims[name] = fact
	}
	return nil
}

func volumeFact(claim string, volume *corev1.PersistentVolume) facts.Volume {
	fact := facts.Volume{Claim: claim, StorageClass: volume.Spec.StorageClassName, Local: volume.Spec.Local != nil || volume.Spec.HostPath != nil}
	if volume.Spec.CSI != nil {
		fact.Driver, fact.Attributes = volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeAttributes
	}
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		terms := affinity.Required.NodeSelectorTerms
		fact.SingleNode = len(terms) == 1 && slices.ContainsFunc(terms[0].MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1
		})
	}
	return fact
}

// get reads an object from the cache, and from the API server what the cache does not have: it holds
// only what carries the label of a stack, and it may be behind a creation of a moment ago.
func (r *AuthStackReconciler) get(ctx context.Context, key types.NamespacedName, into client.Object) (found bool, err error) {
	return getThrough(ctx, r.Client, r.Reader, key, into)
}

func getThrough(ctx context.Context, cached, live client.Reader, key types.NamespacedName, into client.Object) (found bool, err error) {
	err = cached.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, into)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// labelled selects the objects of a stack.
func labelled(st *v1alpha1.AuthStack) []client.ListOption {
	return []client.ListOption{client.InNamespace(st.Namespace), client.MatchingLabels{v1alpha1.StackLabel: st.Name}}
}

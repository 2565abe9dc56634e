package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// asksAgain is how long a claim that could not be grown waits for the next try.
const asksAgain = 15 * time.Second

// Expand grows the images of claims that ask for more than they have, until the
// context ends. It does what Kubernetes' external-resizer does; the kubelet then
// has the file system grown by NodeExpandVolume.
func (p *Provisioner) Expand(ctx context.Context, client kubernetes.Interface) error {
	claims := informers.NewSharedInformerFactory(client, asksAgain).Core().V1().PersistentVolumeClaims().Informer()
	try := func(object any) {
		claim := object.(*corev1.PersistentVolumeClaim)
		if err := p.expand(ctx, client, claim); err != nil {
			fmt.Fprintf(os.Stderr, "growing the volume of %s/%s: %v\n", claim.Namespace, claim.Name, err)
		}
	}
	if _, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    try,
		UpdateFunc: func(_, claim any) { try(claim) },
	}); err != nil {
		return err
	}
	claims.Run(ctx.Done())
	return nil
}

func (p *Provisioner) expand(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		return nil
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != Name || wanted.Cmp(volume.Spec.Capacity[corev1.ResourceStorage]) <= 0 {
		return nil // somebody else's, or grown already and the kubelet's turn
	}
	if err := p.images.resize(ctx, volume.Spec.CSI.VolumeAttributes[attributePool], volume.Spec.CSI.VolumeHandle, inMebibytes(wanted.Value())); err != nil {
		return err
	}
	// The claim first: the kubelet acts when it sees the volume.
	pending := map[string]any{"status": map[string]any{
		"allocatedResources":        map[string]string{"storage": wanted.String()},
		"allocatedResourceStatuses": map[string]string{"storage": string(corev1.PersistentVolumeClaimNodeResizePending)},
		"conditions": []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Message: "Waiting for the kubelet to grow the file system.",
		}},
	}}
	patch, err := json.Marshal(pending)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	patch, err = json.Marshal(map[string]any{"spec": map[string]any{"capacity": map[string]string{"storage": wanted.String()}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

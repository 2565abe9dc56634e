package authentik

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// uploadsVolume is the volume that uploaded files are on.
const uploadsVolume = "files"

// checkUploads says what is the matter with the claim of spec.authentik.uploads.
func checkUploads(in part.Input) part.State {
	uploads := in.Stack.Spec.Authentik.Uploads
	if uploads == nil {
		return part.Ready("")
	}
	const field = "spec.authentik.uploads.claimName"
	claim, found := in.Facts.Claims[uploads.ClaimName]
	if !found {
		return part.Waiting(v1alpha1.ReasonClaimMissing, fmt.Sprintf("PersistentVolumeClaim %s of %s does not exist in namespace %s; create it, ReadWriteMany where the Pods may be on several nodes",
			uploads.ClaimName, field, in.Stack.Namespace))
	}
	if !sharedByNodes(claim.AccessModes) && !slices.Contains(claim.AccessModes, string(corev1.ReadWriteOnce)) {
		return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("PersistentVolumeClaim %s of %s is %s, and server and worker both write to it; name one that is ReadWriteMany or ReadWriteOnce",
			uploads.ClaimName, field, strings.Join(claim.AccessModes, ", ")))
	}
	return part.Ready("")
}

func sharedByNodes(modes []string) bool { return slices.Contains(modes, string(corev1.ReadWriteMany)) }

// mountUploads puts the place of uploaded files into a Pod.
func (p planner) mountUploads(pod *part.Pod) {
	volume, mount := part.Scratch(uploadsVolume, "1Gi"), part.Mount(uploadsVolume, p.release.data, false)
	if uploads := p.spec.Uploads; uploads != nil {
		volume = part.FromClaim(uploadsVolume, uploads.ClaimName)
		mount.SubPath = p.release.dataFolder
		if !sharedByNodes(p.in.Facts.Claims[uploads.ClaimName].AccessModes) {
			pod.OneNode = map[string]string{part.LabelName: Name, part.LabelInstance: p.st.Name}
		}
	}
	pod.Volumes = append(pod.Volumes, volume)
	pod.Container.VolumeMounts = append(pod.Container.VolumeMounts, mount)
}

// s3Settings say where files go; the second is of 2025.12 and later (release notes 2025.12).
var s3Settings = []string{"AUTHENTIK_STORAGE__MEDIA__BACKEND", "AUTHENTIK_STORAGE__BACKEND"}

// Uploads says where a stack's uploaded files are and whether they outlive its Pods; for its status.
func Uploads(in part.Input) string {
	spec := in.Stack.Spec.Authentik
	release, _, err := find(spec.Version)
	if err != nil {
		return ""
	}
	_, variables := planner{in: in, spec: spec}.extraEnvironment()
	for _, setting := range s3Settings {
		if strings.EqualFold(variables[setting], "s3") {
			return "in S3, by spec.authentik.envFromSecrets; they outlive Pods"
		}
	}
	if spec.Uploads != nil {
		return fmt.Sprintf("on PersistentVolumeClaim %s at %s; they outlive Pods", spec.Uploads.ClaimName, release.data)
	}
	return fmt.Sprintf("in each Pod by itself at %s: files uploaded in the admin interface are lost at the next rollout; "+
		"set spec.authentik.uploads.claimName, or S3 by spec.authentik.envFromSecrets", release.data)
}

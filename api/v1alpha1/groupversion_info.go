package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "authstack.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
var AddToScheme = schemeBuilder.AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&AuthStack{}, &AuthStackList{},
		&LatencyTest{}, &LatencyTestList{},
		&LatencyComparison{}, &LatencyComparisonList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})

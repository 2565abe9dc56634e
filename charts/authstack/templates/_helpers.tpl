{{- define "authstack.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The name is fixed: the NetworkPolicies of stacks let the operator in by this label. */ -}}
{{- define "authstack.selectorLabels" -}}
app.kubernetes.io/name: authstack
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "authstack.labels" -}}
{{ include "authstack.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Neither image is published, so a release without them could only wait for images that nobody can pull. */ -}}
{{- define "authstack.operatorRepository" -}}
{{- required "image.repository is empty, and no image of the operator is published: run make docker-build docker-push IMG=registry.example.com/authstack-operator:v1 K6_IMG=registry.example.com/authstack-k6:v1 in a clone of this repository, and write image.repository: registry.example.com/authstack-operator, image.tag: v1 and images.k6: registry.example.com/authstack-k6:v1" .Values.image.repository }}
{{- end }}

{{- define "authstack.k6Image" -}}
{{- required "images.k6 is empty, and no image of k6 with this project's output is published: run make docker-build docker-push IMG=registry.example.com/authstack-operator:v1 K6_IMG=registry.example.com/authstack-k6:v1 in a clone of this repository, and write images.k6: registry.example.com/authstack-k6:v1" .Values.images.k6 }}
{{- end }}

{{- define "authstack.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "authstack.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.create is false: write serviceAccount.name, the ServiceAccount that the operator runs as" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The kinds of the manager's role that no namespace holds; with watchNamespaces only these are granted cluster-wide. */ -}}
{{- define "authstack.clusterScoped" -}}
["storageclasses", "csidrivers", "cephclusters", "cephblockpools", "persistentvolumes", "nodes", "customresourcedefinitions", "namespaces"]
{{- end }}

{{- /* The rules of the manager's role. Takes role (the generated ClusterRole) and scope: all, cluster or namespace. */ -}}
{{- define "authstack.rules" -}}
{{- $scope := .scope }}
{{- $cluster := include "authstack.clusterScoped" . | fromJsonArray }}
{{- $rules := list }}
{{- range .role.rules }}
{{- $rule := . }}
{{- if ne $scope "all" }}
{{- $resources := list }}
{{- range .resources }}
{{- if eq (has . $cluster) (eq $scope "cluster") }}
{{- $resources = append $resources . }}
{{- end }}
{{- end }}
{{- $rule = set (deepCopy .) "resources" $resources }}
{{- if eq $scope "cluster" }}
{{- $verbs := list }}
{{- range .verbs }}
{{- if has . (list "get" "list" "watch") }}
{{- $verbs = append $verbs . }}
{{- end }}
{{- end }}
{{- $rule = set $rule "verbs" $verbs }}
{{- if not $verbs }}
{{- $rule = set $rule "resources" list }}
{{- end }}
{{- end }}
{{- end }}
{{- if $rule.resources }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}

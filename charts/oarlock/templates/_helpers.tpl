{{- define "oarlock.image" -}}
{{- include "oarlock.imageOf" (dict "root" . "own" dict) -}}
{{- end }}

{{- /* Each field of the image of a pool that is empty is that of `image`, except the digest of another image. */ -}}
{{- define "oarlock.imageOf" -}}
{{- $common := .root.Values.image -}}
{{- $repository := .own.repository | default $common.repository -}}
{{- $digest := ternary .own.digest $common.digest (not (empty (or .own.repository .own.tag .own.digest))) -}}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ .own.tag | default $common.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "oarlock.labels" -}}
app.kubernetes.io/name: oarlock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "oarlock.selector" -}}
app.kubernetes.io/name: oarlock
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "oarlock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "oarlock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* Arguments: root, values of the component. */ -}}
{{- define "oarlock.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* Arguments: name. */ -}}
{{- define "oarlock.service" -}}
oarlock-{{ . }}.oarlock-system.svc
{{- end }}

{{- /* PodSpec of a worker. Arguments: root, values. */ -}}
{{- define "oarlock.workerPod" -}}
{{- $values := .values -}}
{{- $image := $values.image | default dict -}}
{{- $container := dict
  "name" "worker"
  "image" (include "oarlock.imageOf" (dict "root" .root "own" $image))
  "imagePullPolicy" ($image.pullPolicy | default .root.Values.image.pullPolicy)
  "args" (list "worker")
  "resources" ($values.resources | default dict)
  "env" ($values.extraEnv | default list)
  "securityContext" (include "oarlock.containerSecurity" .root | fromYaml)
  "volumeMounts" (concat (list (dict "name" "home" "mountPath" "/home/oarlock") (dict "name" "tmp" "mountPath" "/tmp")) ($values.extraVolumeMounts | default list))
-}}
{{- /* Process 1 of the Pod reaps the processes that engines leave; a worker does not. */ -}}
{{- $pod := dict
  "shareProcessNamespace" true
  "automountServiceAccountToken" false
  "enableServiceLinks" false
  "securityContext" (include "oarlock.podSecurity" .root | fromYaml)
  "containers" (list $container)
  "volumes" (concat (list (dict "name" "home" "emptyDir" dict) (dict "name" "tmp" "emptyDir" dict)) ($values.extraVolumes | default list))
-}}
{{- with $values.serviceAccountName }}{{- $_ := set $pod "serviceAccountName" . -}}{{- end -}}
{{- $pod = mergeOverwrite $pod (include "oarlock.scheduling" . | fromYaml) ($values.podSpec | default dict | deepCopy) -}}
{{- toYaml $pod -}}
{{- end }}

{{- /* As podWorkerBindings (src/app/manifests/worker-roles.ts). Arguments: root, namespace, name, allRuns. */ -}}
{{- define "oarlock.podWorkerBindings" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: "oarlock:pod-worker:{{ .namespace }}:{{ .name }}"
  labels: {{- include "oarlock.labels" .root | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "oarlock:pod-worker" }
subjects: [{ kind: ServiceAccount, namespace: {{ .namespace }}, name: {{ .name }} }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRoleBinding" "RoleBinding" .allRuns }}
metadata:
  {{- if .allRuns }}
  name: "oarlock:pod-worker-runs:{{ .namespace }}:{{ .name }}"
  {{- else }}
  name: {{ .name }}-runs
  namespace: {{ .namespace }}
  {{- end }}
  labels: {{- include "oarlock.labels" .root | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "oarlock:pod-worker-runs" }
subjects: [{ kind: ServiceAccount, namespace: {{ .namespace }}, name: {{ .name }} }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: oarlock-worker-lease-{{ .namespace }}-{{ .name }}
  namespace: oarlock-system
  labels: {{- include "oarlock.labels" .root | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "oarlock:pod-worker-lease" }
subjects: [{ kind: ServiceAccount, namespace: {{ .namespace }}, name: {{ .name }} }]
{{- end }}

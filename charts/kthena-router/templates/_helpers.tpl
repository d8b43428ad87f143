{{/* Labels that never change for a release: a Deployment's selector is immutable. */}}
{{- define "kthena-router.selectorLabels" -}}
app.kubernetes.io/name: kthena-router
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: kthena-router
{{- end }}

{{/* Labels of every object except the component, which differs. */}}
{{- define "kthena-router.commonLabels" -}}
app.kubernetes.io/name: kthena-router
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kthena-router.labels" -}}
{{ include "kthena-router.commonLabels" . }}
app.kubernetes.io/component: kthena-router
{{- end }}

{{/* "true" where cert-manager makes certificates. */}}
{{- define "kthena-router.certManager" -}}
{{- if eq .Values.global.certManagementMode "cert-manager" }}true{{ end }}
{{- end }}

{{/* The folder of the webhook's certificate. Both files come from one Secret, so they share it. */}}
{{- define "kthena-router.webhookCertFolder" -}}
{{- $tls := .Values.kthenaRouter.webhook.tls }}
{{- if ne (dir $tls.certFile) (dir $tls.keyFile) }}
{{- fail "kthenaRouter.webhook.tls: certFile and keyFile must be in one folder, they come from one Secret" }}
{{- end }}
{{- dir $tls.certFile }}
{{- end }}

{{- define "purlin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "purlin.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "purlin.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "purlin.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "purlin.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* They cannot be changed in a Deployment, so they contain no label of the user. */}}
{{- define "purlin.selectorLabels" -}}
app.kubernetes.io/name: {{ include "purlin.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "purlin.chartLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "purlin.labels" -}}
{{- include "purlin.labelsWith" (list . (dict) "") }}
{{- end }}

{{- /* The labels of an object with labels of its own. Arguments: the root, the labels, and the value they are from. */}}
{{- define "purlin.labelsWith" -}}
{{- $root := index . 0 }}
{{- $own := index . 1 }}
{{- $selector := include "purlin.selectorLabels" $root | fromYaml }}
{{- $chart := include "purlin.chartLabels" $root | fromYaml }}
{{- range $key := keys $selector $chart | sortAlpha }}
{{- $hint := "the chart sets this label itself (hint: remove it; nameOverride changes app.kubernetes.io/name)" }}
{{- if hasKey $root.Values.commonLabels $key }}{{ fail (printf "commonLabels: %s: %s" $key $hint) }}{{ end }}
{{- if hasKey $own $key }}{{ fail (printf "%s: %s: %s" (index $ 2) $key $hint) }}{{ end }}
{{- end }}
{{- toYaml (merge (dict) $own $root.Values.commonLabels $selector $chart) }}
{{- end }}

{{- define "purlin.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* "true" if only one Pod at a time can use the volume of the cache. */}}
{{- define "purlin.cacheIsExclusive" -}}
{{- with .Values.cache.persistentVolumeClaim }}
{{- if and .enabled (hasPrefix "ReadWriteOnce" .accessMode) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "purlin.cacheClaim" -}}
{{- .Values.cache.persistentVolumeClaim.existingClaim | default (printf "%s-cache" (include "purlin.fullname" .)) }}
{{- end }}

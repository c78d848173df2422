{{- define "writ.name" -}}
{{- if contains "writ" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-writ{{ end }}
{{- end }}

{{- define "writ.selector" -}}
app.kubernetes.io/name: writ
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "writ.labels" -}}
{{ include "writ.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The file of settings. Those that the pod depends on are the chart's. */ -}}
{{- define "writ.config" -}}
{{- $own := dict "addr" ":3820" "admin-addr" ":3821" "data" "/data" "store" .Values.store "drain-timeout" "15s" }}
{{- if .Values.tls }}
{{- $own = merge $own (dict "tls-cert" "/etc/writ/tls/tls.crt" "tls-key" "/etc/writ/tls/tls.key") }}
{{- end }}
{{- if .Values.keys }}
{{- range $setting, $file := dict "signing-key" "signing-key.pem" "operator-secret" "operator-secret" "scrub-key" "scrub-key" }}
{{- $_ := set $own $setting (printf "/etc/writ/keys/%s" $file) }}
{{- end }}
{{- end }}
{{- toYaml (merge $own .Values.config) }}
{{- end }}

{{- define "writ.probe" -}}
httpGet:
  path: {{ .path }}
  port: admin
  scheme: {{ if .tls }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "writ.pod" -}}
metadata:
  labels:
    {{- include "writ.labels" . | nindent 4 }}
  annotations:
    writ/config: {{ include "writ.config" . | sha256sum }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ quote . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    # The files keep the modes that writ gave them.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- if eq .Values.store "mongodb" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "writ.selector" . | nindent 10 }}
  {{- end }}
  containers:
    - name: writ
      image: {{ .Values.image }}
      args: [serve, --config=/etc/writ/writ.yaml]
      {{- with .Values.secrets }}
      env:
        {{- range $name, $from := . }}
        - name: {{ $name }}
          valueFrom:
            secretKeyRef:
              {{- toYaml $from | nindent 14 }}
        {{- end }}
      {{- end }}
      ports:
        - name: api
          containerPort: 3820
        - name: admin
          containerPort: 3821
      {{- $probe := dict "path" "/livez" "tls" .Values.tls }}
      # A start answers once the store is open, which takes long only after an upgrade.
      startupProbe:
        {{- include "writ.probe" $probe | nindent 8 }}
        periodSeconds: 1
        failureThreshold: 600
      livenessProbe:
        {{- include "writ.probe" $probe | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        {{- include "writ.probe" (dict "path" "/readyz" "tls" .Values.tls) | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: 2
      lifecycle:
        # Until nobody sends to this pod any more.
        preStop:
          sleep:
            seconds: 5
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /data
        - name: config
          mountPath: /etc/writ/writ.yaml
          subPath: writ.yaml
          readOnly: true
        {{- if .Values.keys }}
        - name: keys
          mountPath: /etc/writ/keys
          readOnly: true
        {{- end }}
        {{- if .Values.tls }}
        - name: tls
          mountPath: /etc/writ/tls
          readOnly: true
        {{- end }}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "writ.name" . }}
    {{- if eq .Values.store "mongodb" }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- if .Values.keys }}
    - name: keys
      secret:
        secretName: {{ quote .Values.keys }}
        defaultMode: 0400
    {{- end }}
    {{- if .Values.tls }}
    - name: tls
      secret:
        secretName: {{ quote .Values.tls }}
        defaultMode: 0400
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

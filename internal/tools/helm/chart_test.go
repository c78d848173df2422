// Package helm has tests of the chart in deploy/helm alone: Helm lints and renders it, and Kubernetes' own types read what
// it renders.
package helm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	root  = "../../.."
	chart = root + "/deploy/helm/writ"
	page  = root + "/docs/kubernetes.md"
)

// examples returns the values that the page shows, by the store that they are for.
func examples(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		store := "embedded"
		if strings.Contains(m[1], "\nstore: mongodb\n") {
			store = "mongodb"
		}
		all[store] = m[1]
	}
	if len(all) != 2 {
		t.Fatalf("the page shows values for %d stores, want both", len(all))
	}
	return all
}

func parsed(t *testing.T, values string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := yaml.Unmarshal([]byte(values), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// objects are what the chart renders. A nil one is not rendered.
type objects struct {
	stateful   *apps.StatefulSet
	deployment *apps.Deployment
	config     *core.ConfigMap
	services   map[string]*core.Service
	budget     *policy.PodDisruptionBudget
	network    *networking.NetworkPolicy
	monitor    *monitoring.ServiceMonitor
}

// render renders the chart as helm install does. Kubernetes' types read the objects, and an unknown or duplicate field is
// an error.
func render(t *testing.T, values string) (all objects, err error) {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	if !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, "v1.30.1") || chartutil.IsCompatibleRange(c.Metadata.KubeVersion, "v1.29.9") {
		t.Errorf("the chart is for Kubernetes %s, want 1.30, which knows the sleep before a stop", c.Metadata.KubeVersion)
	}
	ready, err := chartutil.ToRenderValues(c, parsed(t, values), chartutil.ReleaseOptions{Name: "prod", Namespace: "agents", IsInstall: true}, nil)
	if err != nil {
		return all, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, ready)
	if err != nil {
		return all, err
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	all.services = make(map[string]*core.Service)
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, _, err := decoder.Decode([]byte(document), nil, nil)
			if err != nil {
				return all, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			switch o := object.(type) {
			case *apps.StatefulSet:
				all.stateful = o
			case *apps.Deployment:
				all.deployment = o
			case *core.ConfigMap:
				all.config = o
			case *core.Service:
				all.services[o.Name] = o
			case *policy.PodDisruptionBudget:
				all.budget = o
			case *networking.NetworkPolicy:
				all.network = o
			case *monitoring.ServiceMonitor:
				all.monitor = o
			default:
				t.Errorf("the chart renders a %T, which no test reads", o)
			}
		}
	}
	return all, nil
}

// rendered renders values that the chart must take.
func rendered(t *testing.T, values string) objects {
	t.Helper()
	all, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// pod returns the pods' template.
func (o objects) pod(t *testing.T) core.PodTemplateSpec {
	t.Helper()
	switch {
	case o.stateful != nil && o.deployment == nil:
		return o.stateful.Spec.Template
	case o.deployment != nil && o.stateful == nil:
		return o.deployment.Spec.Template
	}
	t.Fatal("want a StatefulSet or a Deployment")
	return core.PodTemplateSpec{}
}

// TestChart_Lint holds the chart to Helm's lint: it may inform, and must not warn.
func TestChart_Lint(t *testing.T) {
	for store, values := range examples(t) {
		for _, m := range lint.AllWithKubeVersion(chart, parsed(t, values), "agents", nil).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", store, m)
			}
		}
	}
}

// TestChart_Pods holds pods of both stores to what the chart promises: no root, no writes outside of volumes, probes, and
// names that refer to something.
func TestChart_Pods(t *testing.T) {
	for store, values := range examples(t) {
		t.Run(store, func(t *testing.T) {
			all := rendered(t, values)
			pod := all.pod(t)
			if s := pod.Spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 ||
				s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("the pods run as %+v", s)
			}
			if *pod.Spec.AutomountServiceAccountToken {
				t.Error("the pods get a token of Kubernetes")
			}
			c := pod.Spec.Containers[0]
			if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("the container may do more than it needs: %+v", s)
			}
			for _, probe := range []struct {
				got  *core.Probe
				path string
			}{{c.StartupProbe, "/livez"}, {c.LivenessProbe, "/livez"}, {c.ReadinessProbe, "/readyz"}} {
				if get := probe.got.HTTPGet; get.Path != probe.path || get.Port != intstr.FromString("admin") || get.Scheme != core.URISchemeHTTPS {
					t.Errorf("a probe asks %+v, want %s of the admin address over https", get, probe.path)
				}
			}
			if stop := c.Lifecycle.PreStop.Sleep.Seconds + 15; *pod.Spec.TerminationGracePeriodSeconds < stop+5 {
				t.Errorf("a pod is killed %d s after it is told to stop, and needs %d", *pod.Spec.TerminationGracePeriodSeconds, stop)
			}
			volumes := map[string]bool{"data": all.stateful != nil}
			for _, v := range pod.Spec.Volumes {
				volumes[v.Name] = true
				if v.ConfigMap != nil && v.ConfigMap.Name != all.config.Name {
					t.Errorf("a volume has the ConfigMap %s, want %s", v.ConfigMap.Name, all.config.Name)
				}
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("there is no volume %s", m.Name)
				}
			}
			selects(t, pod, all)
		})
	}
}

// selects holds that every selector finds the pods, and that every named port is one of theirs.
func selects(t *testing.T, pod core.PodTemplateSpec, all objects) {
	t.Helper()
	finds := func(name string, selector *meta.LabelSelector, found map[string]string) {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(found)) {
			t.Errorf("the selector of the %s, %v, %v, does not find %v", name, selector, err, found)
		}
	}
	ports := make(map[intstr.IntOrString]bool)
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[intstr.FromString(p.Name)] = true
	}
	for _, s := range all.services {
		finds("Service "+s.Name, &meta.LabelSelector{MatchLabels: s.Spec.Selector}, pod.Labels)
		for _, p := range s.Spec.Ports {
			if !ports[p.TargetPort] {
				t.Errorf("the pods have no port %v, to which the service %s sends", p.TargetPort, s.Name)
			}
		}
	}
	admin := all.services["prod-writ-admin"]
	if all.services["prod-writ"] == nil || admin == nil {
		t.Fatalf("the services are %v, want prod-writ and prod-writ-admin", all.services)
	}
	finds("NetworkPolicy", &all.network.Spec.PodSelector, pod.Labels)
	for _, rule := range all.network.Spec.Ingress {
		for _, p := range rule.Ports {
			if !ports[*p.Port] {
				t.Errorf("the pods have no port %v, which the NetworkPolicy opens", p.Port)
			}
			if p.Port.StrVal == "admin" && len(rule.From) == 0 {
				t.Error("everybody reaches the admin address")
			}
		}
	}
	if all.monitor != nil {
		finds("ServiceMonitor", &all.monitor.Spec.Selector, admin.Labels)
		if e := all.monitor.Spec.Endpoints[0]; e.Port != admin.Spec.Ports[0].Name || e.Scheme == nil || string(*e.Scheme) != "https" {
			t.Errorf("the ServiceMonitor asks %+v", e)
		}
	}
	if all.budget != nil {
		finds("PodDisruptionBudget", all.budget.Spec.Selector, pod.Labels)
	}
}

// TestChart_Stores holds what differs between the stores.
func TestChart_Stores(t *testing.T) {
	shown := examples(t)
	one, many := rendered(t, shown["embedded"]), rendered(t, shown["mongodb"])
	if s := one.stateful; s == nil || *s.Spec.Replicas != 1 || one.services[s.Spec.ServiceName] == nil || one.budget != nil {
		t.Errorf("embedded is %+v with the budget %v, want one pod of a StatefulSet, and no budget", s, one.budget)
	} else if claim := s.Spec.VolumeClaimTemplates[0]; claim.Name != "data" || claim.Spec.Resources.Requests.Storage().String() != "50Gi" {
		t.Errorf("the volume is %+v, want data of 50Gi", claim)
	}
	if d := many.deployment; d == nil || *d.Spec.Replicas != 3 || many.budget == nil || many.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("mongodb is %+v with the budget %+v, want three pods of which one may be away", d, many.budget)
	}
	env := many.pod(t).Spec.Containers[0].Env
	if len(env) != 1 || env[0].Name != "WRIT_MONGODB_URI" || env[0].Value != "" || env[0].ValueFrom.SecretKeyRef.Name != "writ-mongodb" ||
		env[0].ValueFrom.SecretKeyRef.Key != "uri" {
		t.Errorf("the pods get %+v, want the URI from the secret", env)
	}
	if one.monitor != nil || many.monitor == nil {
		t.Errorf("the ServiceMonitors are %v and %v, want it only where the values ask for it", one.monitor, many.monitor)
	}
}

// TestChart_RefusesByName holds that values that do not fit are refused, and that the message names them.
func TestChart_RefusesByName(t *testing.T) {
	const image = "image: registry.example/writ:1.2.3\n"
	for _, c := range []struct{ values, want string }{
		{"{}", "image"},
		{"image: registry.example/writ\n", "/image"},
		{image + "imagee: x\n", "imagee"},
		{image + "store: mysql\n", "/store"},
		{image + "store: mongodb\nsecrets: {WRIT_MONGODB_URI: {name: a, key: b}}\n", "/keys"},
		{image + "store: mongodb\nkeys: a\n", "WRIT_MONGODB_URI"},
		{image + "secrets: {WRIT_MONGODB_URI: {name: a, key: b}}\n", "/secrets/WRIT_MONGODB_URI"},
		{image + "secrets: {WRIT_SERVICE_TOKEN: hunter2}\n", "/secrets/WRIT_SERVICE_TOKEN"},
		{image + "secrets: {WRIT_SERVICE_TOKEN: {name: a}}\n", "key"},
		{image + "secrets: {WRIT_AUDIT: {name: a, key: b}}\n", "WRIT_AUDIT"},
		{image + "config: {adr: x}\n", "adr"},
		{image + "config: {audit: none}\n", "/config/audit"},
		{image + "config: {demo: true}\n", "demo"},
		{image + "config: {service-token: hunter2}\n", "service-token"},
		{image + "config: {addr: ':80'}\n", "addr"},
		{image + "config: {cache-mb: [1]}\n", "/config/cache-mb"},
		{image + "replicas: 0\n", "/replicas"},
		{image + "storage: {size: large}\n", "/storage/size"},
		{image + "serviceMonitor: {enabled: 'yes'}\n", "/serviceMonitor/enabled"},
		{image + "service: {type: Public}\n", "/service/type"},
	} {
		if _, err := render(t, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q is answered %v, want an error that names %s", c.values, err, c.want)
		}
	}
}

// writ builds the program, and returns a function that runs it.
func writ(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "writ")
	if out, err := exec.Command("go", "-C", root, "build", "-o", program, "./cmd/writ").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{}
		return cmd
	}
}

// TestChart_WritTakesIt has the program itself read what the chart renders: arguments, variables and the file of
// settings. It then serves with the settings of embedded, and is asked what the probes ask.
func TestChart_WritTakesIt(t *testing.T) {
	run := writ(t)
	help, err := run("serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for store, values := range examples(t) {
		all := rendered(t, values)
		c := all.pod(t).Spec.Containers[0]
		if !slices.Equal(c.Args, []string{"serve", "--config=/etc/writ/writ.yaml"}) || c.Command != nil {
			t.Errorf("%s: the container runs %v %v", store, c.Command, c.Args)
		}
		for _, variable := range c.Env {
			if !bytes.Contains(help, []byte("$"+variable.Name)) {
				t.Errorf("%s: writ serve reads no variable %s", store, variable.Name)
			}
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/etc/writ/writ.yaml" && m.SubPath == "writ.yaml" }) {
			t.Errorf("%s: the file of settings is not mounted: %v", store, c.VolumeMounts)
		}
		settings := parsed(t, all.config.Data["writ.yaml"])
		mounted(t, store, settings, c.VolumeMounts)
		if store == "mongodb" {
			settings["mongodb-uri"] = "mongodb://m/?replicaSet=rs" // it comes as a variable
		}
		delete(settings, "tls-cert") // the check reads the files
		delete(settings, "tls-key")
		file := filepath.Join(t.TempDir(), "writ.yaml")
		written(t, file, settings)
		if out, err := run("config", "check", file).CombinedOutput(); err != nil {
			t.Errorf("%s: writ refuses the settings: %v\n%s", store, err, out)
		}
		if store == "embedded" {
			settings["addr"], settings["admin-addr"], settings["data"] = "127.0.0.1:0", "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
			written(t, file, settings)
			answers(t, run("serve", "--config="+file), c)
		}
	}
}

// mounted holds that the files that the chart's own settings name are in volumes.
func mounted(t *testing.T, store string, settings map[string]any, mounts []core.VolumeMount) {
	t.Helper()
	for _, setting := range []string{"data", "signing-key", "operator-secret", "scrub-key", "tls-cert", "tls-key"} {
		name, ok := settings[setting].(string)
		if !ok {
			continue
		}
		in := func(m core.VolumeMount) bool { return name == m.MountPath || strings.HasPrefix(name, m.MountPath+"/") }
		if !slices.ContainsFunc(mounts, in) {
			t.Errorf("%s: %s is %s, which no volume has", store, setting, name)
		}
	}
}

func written(t *testing.T, name string, settings map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// answers starts the server and asks it what the probes ask.
func answers(t *testing.T, server *exec.Cmd, c core.Container) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	server.Stdout, server.Stderr = out, out
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Wait() }()
	defer func() {
		_ = server.Process.Kill()
		<-stopped
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	serves := regexp.MustCompile(`metrics and readiness on (\S+)`)
	var admin string
	for admin == "" {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if m := serves.FindSubmatch(text); m != nil {
			admin = string(m[1])
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not start:\n%s", text)
		case err := <-stopped:
			stopped <- err
			t.Fatalf("the server ends: %v\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		resp, err := http.Get(admin + probe.HTTPGet.Path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s answers a probe with %s", probe.HTTPGet.Path, resp.Status)
		}
	}
}

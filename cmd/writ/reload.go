package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/internal/tlsfiles"
)

// again reads the command line, the variables and the file of settings once more.
type again func() (*serveCmd, *kong.Node, error)

// reloadable are the settings that a running server takes over. Files that settings name are read again in any case.
var reloadable = map[string]bool{
	"log-level": true, "plans": true, "rate-limit-credential": true, "rate-limit-evaluate": true,
	"rate-limit-changes": true, "rate-limit-address": true,
}

// reloader reads the settings of a server again. All that has changed is taken over, or nothing.
type reloader struct {
	node  *node
	again again
	flags []*kong.Flag
	total *prometheus.CounterVec

	mu     sync.Mutex
	values map[string]any // of the settings, by flag, as they are in force
}

func newReloader(n *node, verb *kong.Node, again again) *reloader {
	r := &reloader{node: n, again: again, flags: verb.Flags, values: settingValues(verb),
		total: telemetry.CounterVec("writ_reloads_total",
			"Times that the settings were read again, by whether they were taken over.", "result")}
	n.registry.MustRegister(r.total)
	for _, result := range []string{"ok", "refused"} {
		r.total.WithLabelValues(result)
	}
	return r
}

func settingValues(verb *kong.Node) map[string]any {
	values := make(map[string]any)
	for _, f := range verb.Flags {
		values[f.Name] = f.Target.Interface()
	}
	return values
}

// reload reads the settings of the server again.
func (n *node) reload() (said string, err error) {
	if n.reloader == nil {
		return "", errors.New("this server does not read its settings again")
	}
	return n.reloader.reload()
}

// reload reads everything again. It says what has changed, and what needs a restart.
func (r *reloader) reload() (said string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.node.level.Level()
	level := old
	defer func() {
		if err != nil {
			r.total.WithLabelValues("refused").Inc()
			r.node.log.Error("the settings were read again, and nothing was changed", "problem", err)
			return
		}
		r.total.WithLabelValues("ok").Inc()
		r.node.level.Set(min(old, level)) // the log has this line even if it has no other of its level from now on
		r.node.log.Info("the settings were read again: " + said)
		r.node.level.Set(level)
	}()
	next, verb, err := r.again()
	if err != nil {
		return "", err
	}
	plans, err := plansIn(next.Plans)
	if err != nil {
		return "", err
	}
	var certificates []func()
	for _, files := range []*tlsfiles.Server{r.node.tls, r.node.envoyTLS} {
		if files == nil {
			continue
		}
		use, err := files.Read()
		if err != nil {
			return "", err
		}
		certificates = append(certificates, use)
	}
	if err := r.node.server.SetRateLimits(next.CallerLimits.rateLimits()); err != nil {
		return "", err
	}
	// Nothing can fail from here.
	for _, use := range certificates {
		use()
	}
	r.node.service.SetPlans(plans)
	level = next.LogLevel
	return r.took(settingValues(verb)), nil
}

// compare returns the settings that would change at once, and those that wait for a restart.
func (r *reloader) compare(values map[string]any) (changed, waiting []string) {
	for name, value := range values {
		switch {
		case reflect.DeepEqual(value, r.values[name]):
		case reloadable[name]:
			changed = append(changed, name)
		default:
			waiting = append(waiting, name)
		}
	}
	slices.Sort(changed)
	slices.Sort(waiting)
	return changed, waiting
}

// took keeps the settings that are in force now, and says what has changed.
func (r *reloader) took(values map[string]any) string {
	changed, waiting := r.compare(values)
	for _, name := range changed {
		r.values[name] = values[name]
	}
	said := "plans and certificates are as their files say"
	if len(changed) > 0 {
		said += fmt.Sprintf("; changed: %s", strings.Join(changed, ", "))
	}
	if len(waiting) > 0 {
		said += fmt.Sprintf("; after a restart: %s", strings.Join(waiting, ", "))
	}
	return said
}

// unread returns the settings that have changed since they were read, as compare does.
func (r *reloader) unread() (changed, waiting []string, err error) {
	next, verb, err := r.again()
	if err == nil {
		err = next.checkFiles()
	}
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, waiting = r.compare(settingValues(verb))
	return changed, waiting, nil
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// planFile is a plan in a file of plans. A member is nil if the file does not have it. Without
// this, a missing limit would read as zero, and a missing retention as forever.
type planFile struct {
	Name          *string `json:"name"`
	Evaluations   *int64  `json:"evaluations"`
	Agents        *int64  `json:"agents"`
	Policies      *int64  `json:"policies"`
	Rules         *int64  `json:"rules"`
	Tokens        *int64  `json:"tokens"`
	RetentionDays *int64  `json:"retention_days"`
	CSVExport     bool    `json:"csv_export"`
}

// plansIn reads the deployment's plans from a file. If no file is named, it returns the
// built-in plans.
func plansIn(file string) (map[string]engine.Plan, error) {
	if file == "" {
		return engine.DefaultPlans(), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the plans: %w", err)
	}
	plans, err := readPlans(data)
	if err != nil {
		return nil, &inputError{name: file, err: err}
	}
	return plans, nil
}

// readPlans parses a JSON object of plans by name. The error is an [*engine.InvalidError] with
// the problems of all plans.
func readPlans(data []byte) (map[string]engine.Plan, error) {
	var file map[string]planFile
	if err := engine.Decode(data, "plans", &file); err != nil {
		return nil, err
	}
	plans := make(map[string]engine.Plan, len(file))
	var found engine.InvalidError
	for _, name := range slices.Sorted(maps.Keys(file)) {
		p, fields := file[name].plan(name)
		plans[name] = p
		found.Fields = append(found.Fields, fields...)
	}
	if _, ok := plans[engine.FreePlan]; !ok {
		found.Fields = append(found.Fields,
			engine.FieldError{Field: "plans",
				Message: fmt.Sprintf("no plan %q: it is that of organizations without a subscription",
					engine.FreePlan)})
	}
	if len(found.Fields) > 0 {
		return nil, &found
	}
	return plans, nil
}

// plan returns f as the plan with this name, and the mistakes in it.
func (f planFile) plan(name string) (_ engine.Plan, found []engine.FieldError) {
	refuse := func(member, message string) {
		found = append(found, engine.FieldError{Field: "plans." + name + "." + member, Message: message})
	}
	limit := func(member string, v *int64, most int64) int64 {
		switch {
		case v == nil:
			refuse(member, "is required")
		case *v < 0 || *v > most:
			refuse(member, fmt.Sprintf("want an integer from 0 to %d", most))
		default:
			return *v
		}
		return 0
	}
	switch {
	case f.Name == nil:
		refuse("name", fmt.Sprintf("is required: want the plan's key, %q", name))
	case *f.Name != name:
		refuse("name", fmt.Sprintf("got %q, want the plan's key, %q", *f.Name, name))
	}
	// A time.Duration can hold twice as many days. That leaves room for --retention-grace.
	const longest = int64(math.MaxInt64 / (48 * time.Hour))
	rules, tokens := defaultLimits(name)
	return engine.Plan{
		Name:          name,
		Evaluations:   limit("evaluations", f.Evaluations, condition.MaxInteger),
		Agents:        int(limit("agents", f.Agents, condition.MaxInteger)),
		Policies:      int(limit("policies", f.Policies, condition.MaxInteger)),
		Rules:         int(limit("rules", cmp.Or(f.Rules, &rules), condition.MaxInteger)),
		Tokens:        int(limit("tokens", cmp.Or(f.Tokens, &tokens), condition.MaxInteger)),
		RetentionDays: int(limit("retention_days", f.RetentionDays, longest)),
		CSVExport:     f.CSVExport,
	}, found
}

// defaultLimits returns the limits of rules and tokens for a plan whose file does not have
// them. If there is a built-in plan of that name, they are its limits. Otherwise they are the
// most generous limits.
func defaultLimits(name string) (rules, tokens int64) {
	for builtIn, p := range engine.DefaultPlans() {
		if builtIn == name {
			return int64(p.Rules), int64(p.Tokens)
		}
		rules, tokens = max(rules, int64(p.Rules)), max(tokens, int64(p.Tokens))
	}
	return rules, tokens
}

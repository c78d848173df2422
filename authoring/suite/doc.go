// Package suite reads and runs tests of policies and rules. A test has intents and the decisions
// that they must get. It is written in YAML or JSON.
//
//	suite: payments
//	policy: policies/payments.yaml
//	rules: rules.yaml
//	now: 2026-11-02T10:00:00Z
//	intents:
//	  refund: {agent_id: billing-agent, action_type: payment.refund, resource: "https://api.payments.example/v1/refunds"}
//	  payout: {extends: refund, action_type: payment.payout, cost: {amount_minor: 1250, currency: EUR}}
//	tests:
//	  - name: the cap is inclusive
//	    intent: payout
//	    table:
//	      columns: [cost.amount_minor, want, codes]
//	      rows:
//	        - [50000, approval_required, [rule.approval_required]]
//	        - [50001, deny, [cost.exceeded, rule.approval_required]]
//	  - {name: a payment states its cost, intent: payout, set: {cost: null}, want: deny, rule: Every payment states its cost}
//
// A test without the members table and each is one case. With a table it has a case for each row.
// With each it has a case for every value. With both it has a case for each combination. [File]
// documents every member. Reading is as strict as [document.Parse], and every mistake has a place.
//
// A [Loader] reads suites. It compiles each policy version with its rules only once. [Run] decides
// the cases with the engine of the service. On request it also decides them with the policy's
// prepared Rego. A [Report] can be written as text, as JSON or as JUnit's XML.
package suite

import "github.com/go-json-experiment/json/jsontext"

// File is the document that describes a suite.
type File struct {
	// Suite is the name of the suite. The default is the file's name.
	Suite string `json:"suite,omitzero"`
	// Policy is a path or a policy. With Policies, every test runs once for each of them. Paths are
	// relative to the file.
	Policy   jsontext.Value   `json:"policy,omitzero"`
	Policies []jsontext.Value `json:"policies,omitzero"`
	// Rules is a path, or an array of paths and rules.
	Rules jsontext.Value `json:"rules,omitzero"`
	// Lists has the values of the lists that the rules look in, by the names of the lists. Any other JSON
	// than an array of texts is the list's data.
	Lists map[string]jsontext.Value `json:"lists,omitzero"`
	// Libraries is the path of a directory with the libraries that the rules import, relative to the
	// file.
	Libraries string `json:"libraries,omitzero"`
	// Now is the time of the decisions, and the issued_at of intents that have none. Without it an
	// intent is decided at its issued_at.
	Now string `json:"now,omitzero"`
	// Intents has the fixtures by name. A fixture has the members of an intent. Its member extends
	// names the fixture to start from. The members of cost and metadata are merged one by one. Null
	// removes a member.
	Intents map[string]map[string]jsontext.Value `json:"intents,omitzero"`
	Tests   []Test                               `json:"tests,omitzero"`
}

// Test is one intent, or several similar ones, with the decision that they must get.
type Test struct {
	// Name is required. No two tests of a suite have the same name.
	Name string `json:"name"`
	// Intent names a fixture.
	Intent string `json:"intent,omitzero"`
	// Set sets members of the intent by their paths, such as cost.amount_minor or metadata.env.
	// Null removes a member.
	Set map[string]jsontext.Value `json:"set,omitzero"`
	// Table makes a case for each row. Each has a list of values for each path, and makes a case
	// for each combination of the values.
	Table *Table                      `json:"table,omitzero"`
	Each  map[string][]jsontext.Value `json:"each,omitzero"`

	// Now is the time of the decision, in place of the suite's.
	Now string `json:"now,omitzero"`
	// Session narrows the policy to a task of the intent's agent. It is an object with members of
	// [Session].
	Session jsontext.Value `json:"session,omitzero"`
	// Agent is the status of the agent: active, disabled or unregistered. The default is
	// unregistered.
	Agent             string `json:"agent,omitzero"`
	Stopped           bool   `json:"organization_stopped,omitzero"`
	UsageExceeded     bool   `json:"usage_exceeded,omitzero"`
	RequireRegistered bool   `json:"require_registered_agents,omitzero"`
	// Counted is the value of each counter before the intent is counted.
	Counted int64 `json:"counted,omitzero"`

	// Want is the decision: allow, approval_required or deny. The value refused means that the
	// intent is not valid: the service answers 400 and decides nothing. Want is required.
	Want string `json:"want,omitzero"`
	// Message is a part of the error if the intent is refused.
	Message string `json:"message,omitzero"`
	// Codes are the codes of all findings, in any order.
	Codes *[]string `json:"codes,omitzero"`
	// Rule is the name or the id of the rule that decides.
	Rule string `json:"rule,omitzero"`
	// Error says that the condition of a rule cannot be evaluated.
	Error *bool `json:"error,omitzero"`
}

// Session is the session of a case: the members of POST /v1/sessions that narrow the policy.
type Session struct {
	AllowedActionTypes      []string `json:"allowed_action_types,omitzero"`
	AllowedResourcePatterns []string `json:"allowed_resource_patterns,omitzero"`
	MaxCostMinor            *int64   `json:"max_cost_minor,omitzero"`
}

// Table makes a case for each row. A column is the path of a member of the intent, or one of
// intent, now, session, agent, organization_stopped, usage_exceeded, require_registered_agents, counted,
// want, message, codes, rule and error. The value of a cell replaces the test's value for this column. In a column that
// is not a member of the intent, null keeps the test's value.
type Table struct {
	Columns []string           `json:"columns"`
	Rows    [][]jsontext.Value `json:"rows"`
}

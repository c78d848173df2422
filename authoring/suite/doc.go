// Package suite reads and runs tests of policies and rules: fixtures of intents and what
// each is decided, in YAML or JSON.
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
// A test is one case, one for each row of its table, one for each value of its each, or one
// for each combination. [File] has every member. Reading is as strict as [document.Parse]:
// what is wrong has a place.
//
// A [Loader] reads suites, and compiles each policy version and its rules once. [Run]
// decides their cases with the engine of the service, and with the prepared Rego of the
// policy besides. A [Report] can be written as text, as JSON and as JUnit's XML.
package suite

import "github.com/go-json-experiment/json/jsontext"

// File is the document that describes a suite.
type File struct {
	// Suite is the name of the suite; the file's name where it is left out.
	Suite string `json:"suite,omitzero"`
	// Policy is a path or a policy, Policies several: every test runs by each. Paths are
	// relative to the file.
	Policy   jsontext.Value   `json:"policy,omitzero"`
	Policies []jsontext.Value `json:"policies,omitzero"`
	// Rules is a path, or an array of paths and rules.
	Rules jsontext.Value `json:"rules,omitzero"`
	// Lists are the values of those that the rules look in, by name.
	Lists map[string][]string `json:"lists,omitzero"`
	// Now is the issued_at of intents that have none.
	Now string `json:"now,omitzero"`
	// Intents are the fixtures by name: the members of an intent, and extends, which names
	// the fixture to start from. Members of cost and metadata are merged; null removes.
	Intents map[string]map[string]jsontext.Value `json:"intents,omitzero"`
	Tests   []Test                               `json:"tests,omitzero"`
}

// Test is one intent, or several that are alike, and what they are decided.
type Test struct {
	// Name is required, and no two tests of a suite have the same.
	Name string `json:"name"`
	// Intent names a fixture.
	Intent string `json:"intent,omitzero"`
	// Set gives members of the intent other values, by their paths, such as
	// cost.amount_minor or metadata.env; null removes.
	Set map[string]jsontext.Value `json:"set,omitzero"`
	// Table has a case for each row, Each one for each value of a path, and one for each
	// combination where there are several.
	Table *Table                      `json:"table,omitzero"`
	Each  map[string][]jsontext.Value `json:"each,omitzero"`

	// Session narrows the policy to a task of the intent's agent: an object with any of the
	// members of [Session].
	Session jsontext.Value `json:"session,omitzero"`
	// Agent is the kill switch of the agent: active, disabled or unregistered, which it is
	// where nothing is said.
	Agent             string `json:"agent,omitzero"`
	UsageExceeded     bool   `json:"usage_exceeded,omitzero"`
	RequireRegistered bool   `json:"require_registered_agents,omitzero"`
	// Counted is what each counter of the rules that counts the intent had come to before.
	Counted int64 `json:"counted,omitzero"`

	// Want is the decision: allow, approval_required or deny, or refused where the intent is
	// not valid, which the service answers with 400 and decides nothing. It is required.
	Want string `json:"want,omitzero"`
	// Message is a part of what is said of an intent that is refused.
	Message string `json:"message,omitzero"`
	// Codes are those of all findings, in any order.
	Codes *[]string `json:"codes,omitzero"`
	// Rule is the name or the id of the rule that decides.
	Rule string `json:"rule,omitzero"`
	// Error says whether the condition of a rule cannot be evaluated.
	Error *bool `json:"error,omitzero"`
}

// Session is what a session of a case allows: the members of POST /v1/sessions that narrow.
type Session struct {
	AllowedActionTypes      []string `json:"allowed_action_types,omitzero"`
	AllowedResourcePatterns []string `json:"allowed_resource_patterns,omitzero"`
	MaxCostMinor            *int64   `json:"max_cost_minor,omitzero"`
}

// Table has a case a row. A column is the path of a member of the intent, or one of
// intent, session, agent, usage_exceeded, require_registered_agents, counted, want, message, codes, rule and
// error, which then stand for the test's; null leaves the test's.
type Table struct {
	Columns []string           `json:"columns"`
	Rows    [][]jsontext.Value `json:"rows"`
}

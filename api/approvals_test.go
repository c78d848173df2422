package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// The rule holds deploys to production that cost more than 500.
const (
	costly  = `{"resource":"prod/**","cost.amount_minor":{"$gt":500}}`
	persons = `{"decision":"approval_required","reason":"a person decides"}`
)

// desk is a server with a policy, a rule that holds, and credentials.
type desk struct {
	*harness
	asker, approver, reader string
	ruleID                  string
}

func openDesk(t testing.TB, mods ...func(*setup)) *desk {
	d := &desk{harness: start(t, mods...)}
	d.register(acme)
	d.ruleID = d.rule(acme, costly, persons)
	d.asker, _ = d.key(acme, "policy:evaluate")
	d.approver, _ = d.key(acme, "approvals:decide")
	d.reader, _ = d.key(acme, "approvals:read")
	return d
}

func cost(n int) obj { return obj{"cost": obj{"amount_minor": n, "currency": "EUR"}} }

// hold evaluates an intent that the rule holds for approval. It returns the request's body and the
// approval's id.
func (d *desk) hold(changes ...obj) (body obj, id string) {
	d.t.Helper()
	body = intent(append([]obj{cost(82_000)}, changes...)...)
	r := d.do("POST", "/v1/policy/evaluate", d.asker, body)
	wantDecision(d.t, r, "approval_required")
	var got result
	r.into(&got)
	return body, got.DecisionID
}

// under returns a copy of body with the approval id.
func under(body obj, id string) obj {
	with := maps.Clone(body)
	with["approval_id"] = id
	return with
}

func (d *desk) redeem(body obj, id string) *reply {
	d.t.Helper()
	return d.do("POST", "/v1/policy/evaluate", d.asker, under(body, id))
}

func (d *desk) judge(id, status string, more ...obj) *reply {
	d.t.Helper()
	body := obj{"status": status}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return d.do("PATCH", "/v1/approvals/"+id, d.approver, body)
}

func (d *desk) approve(id string) { d.t.Helper(); d.judge(id, "approved").wantStatus(http.StatusOK) }

func (d *desk) look(id string) (a approvalBody) {
	d.t.Helper()
	d.do("GET", "/v1/approvals/"+id, d.reader, nil).wantStatus(http.StatusOK).into(&a)
	return a
}

// list returns the ids of the approvals that query selects, reading two per page.
func (d *desk) list(query string) (ids []string) {
	d.t.Helper()
	after := ""
	for {
		p := read[page[approvalBody]](d.do("GET", "/v1/approvals?limit=2"+query+after, d.reader, nil).wantStatus(http.StatusOK))
		for _, a := range p.Data {
			ids = append(ids, a.ApprovalID)
		}
		if p.NextCursor == nil {
			return ids
		}
		after = "&cursor=" + *p.NextCursor
	}
}

// codes returns the codes of the reasons in r.
func codes(r *reply) (codes []string) {
	var got result
	r.into(&got)
	for _, reason := range got.Reasons {
		code, _, _ := strings.Cut(reason, ":")
		codes = append(codes, code)
	}
	return codes
}

func wantCodes(t testing.TB, r *reply, decision string, want ...string) {
	t.Helper()
	wantDecision(t, r, decision)
	if diff := cmp.Diff(want, codes(r)); diff != "" {
		t.Errorf("reasons: -want +got\n%s", diff)
	}
}

func TestApprovals_HeldThenApprovedThenAllowedOnce(t *testing.T) {
	d := openDesk(t)
	body, id := d.hold(obj{"metadata": obj{"ticket": "4711", "note": "mail me@example.com"}})

	a := d.look(id)
	if a.Status != approval.Pending || !a.ExpiresAt.Equal(a.HeldAt.Add(time.Hour)) || a.Metadata["ticket"] != "4711" ||
		strings.Contains(a.Metadata["note"], "example.com") || len(a.Findings) != 1 || a.Findings[0].RuleID != d.ruleID {
		t.Errorf("pending approval = %+v, want what an approver needs, scrubbed", a)
	}
	replay := d.redeem(body, id)
	wantDecision(t, replay, "approval_required")
	if replay.header.Get(headerReplayed) != "true" || replay.header.Get("Retry-After") == "" {
		t.Errorf("pending: headers %v, want a replay with Retry-After", replay.header)
	}
	if again := d.do("POST", "/v1/policy/evaluate", d.asker, body); string(again.body) != string(replay.body) {
		t.Errorf("pending under its approval = %s, want the held decision %s", replay.body, again.body)
	}

	first := d.judge(id, "approved", obj{"comment": "for me@example.com", "approved_for": 60}).wantStatus(http.StatusOK)
	if again := d.judge(id, "approved"); string(again.body) != string(first.body) {
		t.Errorf("the same verdict again = %s, want %s", again.body, first.body)
	}
	d.judge(id, "rejected").wantProblem(http.StatusConflict, codeApprovalDecided)
	if a = d.look(id); a.Status != approval.Approved || !a.ApprovedUntil.Equal(a.DecidedAt.Add(time.Minute)) || strings.Contains(a.Comment, "example.com") {
		t.Errorf("approved = %+v, want it approved for a minute", a)
	}

	allowed := d.redeem(body, id)
	wantCodes(t, allowed, "allow", string(engine.CodeApprovalGranted))
	var got result
	allowed.into(&got)
	if err := receipt.Verify(got.Receipt, d.trusted, d.clock.Now()); err != nil || got.DecisionID == id {
		t.Errorf("the receipt of %s: %v", got.DecisionID, err)
	}
	second := d.redeem(body, id)
	if string(second.body) != string(allowed.body) || second.header.Get(headerReplayed) != "true" {
		t.Errorf("the same again = %s, want the first answer", second.body)
	}
	if a = d.look(id); a.Status != approval.Used || a.UsedBy != got.DecisionID || a.Metadata != nil || len(a.Findings) != 1 {
		t.Errorf("used = %+v, want it used by %s and its values erased", a, got.DecisionID)
	}
	d.judge(id, "revoked").wantProblem(http.StatusConflict, codeApprovalDecided)
	if held := d.do("POST", "/v1/policy/evaluate", d.asker, body); string(held.body) != string(replay.body) {
		t.Errorf("without its approval = %s, want the first answer for ever", held.body)
	}
	rows := d.history(acme)
	if len(rows) != 2 || rows[0].DecisionID != got.DecisionID || rows[0].ApprovalID != id || rows[1].DecisionID != id {
		t.Errorf("history = %+v, want the held decision and the one under its approval", rows)
	}
	if n := d.usage(acme).Meters.Evaluations.Used; n != 1 {
		t.Errorf("%d evaluations used, want 1: an approved intent is metered once", n)
	}
}

// TestApprovals_WhatIsRefused checks the error code of each refusal of package approval. The
// tests of that package hold who may decide, and the calls that an approval allows.
func TestApprovals_WhatIsRefused(t *testing.T) {
	d := openDesk(t)
	body, id := d.hold()
	d.judge(id, "revoked").wantProblem(http.StatusConflict, codeApprovalPending)
	self, _ := d.key(acme, "policy:evaluate", "approvals:decide")
	asked := read[result](d.do("POST", "/v1/policy/evaluate", self, intent(cost(82_000))))
	d.do("PATCH", "/v1/approvals/"+asked.DecisionID, self, obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeApprovalSelf)

	d.judge(id, "rejected").wantStatus(http.StatusOK)
	wantCodes(t, d.redeem(body, id), "deny", "rule.approval_required", "approval.rejected")
	maps.Copy(inner(body), cost(820_000))
	d.redeem(body, id).wantProblem(http.StatusConflict, codeIntentConflict)
	d.redeem(body, uuid.NewString()).wantProblem(http.StatusNotFound, "approval_not_found")
	d.redeem(body, "x").wantField("approval_id")
	d.register(rival)
	d.do("POST", "/v1/policy/evaluate", d.operator(rival), under(body, id)).wantProblem(http.StatusNotFound, "approval_not_found")

	body, id = d.hold()
	d.approve(id)
	d.do("PATCH", "/v1/rules/"+d.ruleID, d.operator(acme), obj{"description": "other"}).wantStatus(http.StatusOK)
	wantCodes(t, d.redeem(body, id), "approval_required", "rule.approval_required", "approval.out_of_scope")
	body, id = d.hold()
	d.clock.advance(time.Hour)
	d.judge(id, "approved").wantProblem(http.StatusConflict, codeApprovalExpired)
	wantCodes(t, d.redeem(body, id), "deny", "rule.approval_required", "approval.expired")
}

// TestApprovals_WhoMayLook checks that a key can read only approvals that the key itself requested.
func TestApprovals_WhoMayLook(t *testing.T) {
	d := openDesk(t)
	_, id := d.hold()
	d.do("GET", "/v1/approvals/"+id, d.asker, nil).wantStatus(http.StatusOK)
	other, _ := d.key(acme, "policy:evaluate")
	for _, path := range []string{id, uuid.NewString()} {
		d.do("GET", "/v1/approvals/"+path, other, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
	}
	d.do("GET", "/v1/approvals", d.asker, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
	d.do("PATCH", "/v1/approvals/"+id, d.reader, obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeInsufficientScope)
	for _, bad := range []obj{{"status": "used"}, {"status": "approved", "approved_for": 86_401}, {"status": "rejected", "approved_for": 1}, {"status": "approved", "comment": ""}} {
		d.do("PATCH", "/v1/approvals/"+id, d.approver, bad).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
}

func TestApprovals_AreListedNewestFirst(t *testing.T) {
	d := openDesk(t)
	var ids []string
	for range 4 {
		_, id := d.hold()
		ids = append([]string{id}, ids...)
	}
	const intentID = "9c1c2d1e-5b6f-4f0e-8a41-6c2d7b1f0a99"
	_, theirs := d.hold(obj{"agent_id": "mail-bot", "intent_id": intentID})
	d.approve(ids[1])
	for query, want := range map[string][]string{
		"":                            {theirs, ids[0], ids[1], ids[2], ids[3]},
		"&status=pending":             {theirs, ids[0], ids[2], ids[3]},
		"&status=approved":            {ids[1]},
		"&status=expired":             nil,
		"&status=pending&agent_id=ci": {ids[0], ids[2], ids[3]},
		"&policy_id=" + strings.ToUpper(policyID) + "&agent_id=mail-bot": {theirs},
		"&policy_id=" + uuid.NewString():                                 nil,
		"&intent_id=" + strings.ToUpper(intentID):                        {theirs},
		"&status=pending&intent_id=" + intentID:                          {theirs},
		"&status=approved&intent_id=" + intentID:                         nil,
		"&action_type=http_get":                                          nil,
		"&status=pending&action_type=http_get":                           nil,
		"&action_type=deploy":                                            {theirs, ids[0], ids[1], ids[2], ids[3]},
		"&status=pending&action_type=deploy":                             {theirs, ids[0], ids[2], ids[3]},
	} {
		if diff := cmp.Diff(want, d.list(query)); diff != "" {
			t.Errorf("list of %q: -want +got\n%s", query, diff)
		}
	}
	d.do("GET", "/v1/approvals?status=open", d.reader, nil).wantField("status")
	d.clock.advance(time.Hour)
	if diff := cmp.Diff([]string{theirs, ids[0], ids[1], ids[2], ids[3]}, d.list("&status=expired")); diff != "" {
		t.Errorf("expired: -want +got\n%s", diff)
	}
}

func TestApprovals_ALookUpWaits(t *testing.T) {
	d := openDesk(t)
	body, id := d.hold()
	answers := make(chan approval.Status, 2)
	for range 2 {
		go func() {
			a := read[approvalBody](d.do("GET", "/v1/approvals/"+id+"?wait=60", d.asker, nil))
			answers <- a.Status
		}()
	}
	time.Sleep(50 * time.Millisecond)
	d.approve(id)
	for range 2 {
		if got := <-answers; got != approval.Approved {
			t.Errorf("waited for %s, want approved", got)
		}
	}
	wantDecision(t, d.redeem(body, id), "allow")
	_, other := d.hold()
	var a approvalBody
	if d.do("GET", "/v1/approvals/"+other+"?wait=1", d.asker, nil).into(&a); a.Status != approval.Pending {
		t.Errorf("after the wait = %s, want pending", a.Status)
	}
	for _, bad := range []string{"-1", "61", "x", "1.5"} {
		d.do("GET", "/v1/approvals/"+id+"?wait="+bad, d.reader, nil).wantField("wait")
	}
}

// TestApprovals_SoManyLookUpsWaitAndNoMore sends 700 long polls for approvals. A bounded number
// of polls must wait, without resources that decisions need. The server must refuse all further
// polls at once. A shutdown must answer the waiting polls.
func TestApprovals_SoManyLookUpsWaitAndNoMore(t *testing.T) {
	d := openDesk(t)
	_, id := d.hold()
	d.client.Timeout = 5 * time.Minute // more than a poll waits
	const asked, most = 700, 512
	statuses := make(chan int, asked)
	var all sync.WaitGroup
	// places bounds the number of open connections. Any poll may get a 200. A poll that arrives
	// during the shutdown does not wait.
	places := make(chan struct{}, most+32)
	for range asked {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			r := d.do("GET", "/v1/approvals/"+id+"?wait=60", d.asker, nil)
			if r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") == "" {
				t.Error("a refusal without Retry-After")
			}
			statuses <- r.status
		})
	}
	d.hold() // decisions work while the polls wait
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, d.server.Shutdown(ctx))
	all.Wait()
	close(statuses)
	waited, refused := 0, 0
	for status := range statuses {
		switch status {
		case http.StatusOK:
			waited++
		case http.StatusServiceUnavailable:
			refused++
		default:
			t.Errorf("GET = %d, want it to wait or 503", status)
		}
	}
	if waited == 0 || waited > cap(places) || waited+refused != asked {
		t.Errorf("%d have waited and %d were refused, want up to %d of %d", waited, refused, cap(places), asked)
	}
}

func TestApprovals_InBatches(t *testing.T) {
	d := openDesk(t)
	a, idA := d.hold()
	b, idB := d.hold()
	c, idC := d.hold()
	d.approve(idA)
	d.approve(idB)
	of := func(body obj, id string) obj { return obj{inner(body)["intent_id"].(string): id} }
	ask := func(mode string, approvals obj, bodies ...obj) *reply {
		intents := make([]any, len(bodies))
		for i := range bodies {
			intents[i] = inner(bodies[i])
		}
		return d.do("POST", batchPath, d.asker, obj{"mode": mode, "intents": intents, "approvals": approvals})
	}
	ask("each", obj{uuid.NewString(): idA}, a).wantStatus(http.StatusBadRequest)
	ask("each", of(a, "x"), a).wantStatus(http.StatusBadRequest)
	var got struct {
		Results []result `json:"results"`
	}
	ask("each", of(a, idA), a, a, c).wantStatus(http.StatusOK).into(&got)
	if !got.Results[0].Approved || got.Results[1].DecisionID != got.Results[0].DecisionID || got.Results[2].DecisionID != idC {
		t.Errorf("each = %+v, want one allow twice and the held decision", got.Results)
	}
	ask("all", of(b, idB), b, intent()).wantStatus(http.StatusOK).into(&got)
	if !got.Results[0].Approved || !got.Results[1].Approved {
		t.Errorf("all = %+v, want both allowed", got.Results)
	}
	if s := d.look(idB).Status; s != approval.Used {
		t.Errorf("the approval in a batch is %s, want used", s)
	}
}

func TestApprovals_KeepKeysAlone(t *testing.T) {
	d := openDesk(t, func(c *setup) { c.Service.ApprovalDetail = approval.Keys })
	body, id := d.hold(obj{"metadata": obj{"ticket": "4711"}})
	if a := d.look(id); a.Metadata != nil || !slices.Equal(a.MetadataKeys, []string{"ticket"}) || len(a.Findings) != 1 {
		t.Errorf("approval = %+v, want keys and no values", a)
	}
	d.approve(id)
	wantDecision(t, d.redeem(body, id), "allow")
}

// TestApprovals_EveryFaultRefuses checks that no fault of the store allows an intent. The same
// request succeeds when the store works again.
func TestApprovals_EveryFaultRefuses(t *testing.T) {
	d := openDesk(t)
	for _, call := range []string{"Commit", "Commit lost answer", "Record", "Entry", "Decided", "Get d"} {
		body, id := d.hold()
		d.approve(id)
		d.store.fail(call, errors.New("down"))
		r := d.redeem(body, id)
		d.store.fail(call, nil)
		if r.status == http.StatusOK {
			t.Errorf("%s fails: %s", call, r.body)
		}
		wantDecision(t, d.redeem(body, id), "allow")
	}
}

// TestApprovals_OfACore checks that an external core gets the approval. The approval allows the
// intent only if the core repeats the reason of the hold.
func TestApprovals_OfACore(t *testing.T) {
	h, core := startElsewhere(t)
	reason := "core.why: it is large"
	core.decide = func(_ context.Context, _ engine.Set, in *engine.Input) (engine.Result, error) {
		if a := in.Approval; a != nil && a.Status != ledger.Approved {
			t.Errorf("the core heard of the approval %+v, want an approved one", a)
		}
		return engine.Result{Decision: engine.ApprovalRequired, Findings: []engine.Finding{{Code: engine.CodeCoreFinding, Outcome: engine.ApprovalRequired, Reason: reason}}}, nil
	}
	agent, _ := h.key(acme, "policy:evaluate")
	evaluate := func(body obj) *reply { return h.do("POST", "/v1/policy/evaluate", agent, body) }
	for _, want := range []string{"allow", "approval_required"} {
		body := intent()
		var held result
		evaluate(body).wantStatus(http.StatusOK).into(&held)
		h.do("PATCH", "/v1/approvals/"+held.DecisionID, h.operator(acme), obj{"status": "approved"}).wantStatus(http.StatusOK)
		if want == "approval_required" {
			reason = "core.other: it is at night"
		}
		wantDecision(t, evaluate(under(body, held.DecisionID)), want)
	}
}

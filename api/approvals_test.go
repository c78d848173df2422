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

	"writ/decision/approval"
	"writ/engine"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

// The rule of the tests of approvals: deploys to production that cost more than 500.
const (
	costly  = `{"resource":"prod/**","cost.amount_minor":{"$gt":500}}`
	persons = `{"decision":"approval_required","reason":"a person decides"}`
)

// desk is a server with a policy and the rule.
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

// hold has an intent held and returns its body and its approval's id.
func (d *desk) hold(changes ...obj) (body obj, id string) {
	d.t.Helper()
	body = intent(append([]obj{cost(82_000)}, changes...)...)
	r := d.do("POST", "/v1/policy/evaluate", d.asker, body)
	wantDecision(d.t, r, "approval_required")
	var got result
	r.into(&got)
	return body, got.DecisionID
}

// under returns body with an approval.
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

// list returns the ids of a list of approvals, which it reads two at a time.
func (d *desk) list(query string) (ids []string) {
	d.t.Helper()
	after := ""
	for {
		var p page[approvalBody]
		d.do("GET", "/v1/approvals?limit=2"+query+after, d.reader, nil).wantStatus(http.StatusOK).into(&p)
		for _, a := range p.Data {
			ids = append(ids, a.ApprovalID)
		}
		if p.NextCursor == nil {
			return ids
		}
		after = "&cursor=" + *p.NextCursor
	}
}

// codes returns the codes of the reasons of an answer.
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
	if a = d.look(id); a.Status != approval.Used || a.UsedBy != got.DecisionID || a.Metadata != nil {
		t.Errorf("used = %+v, want it used by %s and its values erased", a, got.DecisionID)
	}
	d.judge(id, "revoked").wantProblem(http.StatusConflict, codeApprovalDecided)
	if held := d.do("POST", "/v1/policy/evaluate", d.asker, body); string(held.body) != string(replay.body) {
		t.Errorf("without its approval = %s, want the first answer for ever", held.body)
	}
	d.wantProved(t, id, got.DecisionID)
}

// wantProved verifies the rows and the entries of an approval, in their order.
func (d *desk) wantProved(t *testing.T, held, allowed string) {
	t.Helper()
	rows := d.history(acme)
	if len(rows) != 2 || rows[0].DecisionID != allowed || rows[0].ApprovalID != held || rows[1].DecisionID != held {
		t.Fatalf("the history has %d rows, want the held one and the one under its approval", len(rows))
	}
	for i := range rows {
		if err := ledger.VerifyRow(&rows[i]); err != nil {
			t.Errorf("VerifyRow = %v", err)
		}
	}
	entries, _, err := d.store.Entries(context.Background(), acme, storage.VerdictEntry, storage.Page{Limit: 10})
	must(t, err)
	if len(entries) != 2 {
		t.Fatalf("%d verdicts, want approved and used", len(entries))
	}
	var order []uint64
	for _, in := range []struct {
		receipt.Inclusion
		leaf [32]byte
	}{
		{rows[1].Receipt.Inclusion(), rows[1].Receipt.LeafHash()}, {entries[1].Inclusion, receipt.EntryLeaf(entries[1].Body)},
		{rows[0].Receipt.Inclusion(), rows[0].Receipt.LeafHash()}, {entries[0].Inclusion, receipt.EntryLeaf(entries[0].Body)},
	} {
		if err := in.Verify(in.leaf, d.trusted); err != nil {
			t.Errorf("Verify = %v", err)
		}
		at, err := in.Leaf(in.leaf)
		must(t, err)
		order = append(order, at.Seq<<32|uint64(at.Index))
	}
	if !slices.IsSorted(order) {
		t.Errorf("the places of held, approved, allowed and used in the chain are %x, want them in that order", order)
	}
	for i, want := range []string{ledger.Used, ledger.Approved} {
		if v, err := ledger.ParseVerdict(entries[i]); err != nil || v.Verdict != want || v.ApprovalID != held {
			t.Errorf("verdict %d = %+v, %v; want %s", i, v, err, want)
		}
	}
	n, err := d.store.Metered(context.Background(), acme, storage.MonthOf(d.clock.Now()))
	if err != nil || n != 1 {
		t.Errorf("Metered = %d, %v; want 1: an approved intent is metered once", n, err)
	}
}

func TestApprovals_CoverExactlyWhatWasApproved(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(d *desk)
		want    string
		codes   []string
	}{
		"nothing":       {func(*desk) {}, "allow", []string{"approval.granted"}},
		"kill switch":   {func(d *desk) { d.disable(acme, "ci") }, "deny", []string{"agent.disabled", "rule.approval_required"}},
		"same policy":   {func(d *desk) { d.register(acme, obj{"version": 2}) }, "allow", []string{"approval.granted"}},
		"a lowered cap": {func(d *desk) { d.register(acme, obj{"version": 2, "max_cost_minor": 81_999}) }, "deny", []string{"cost.exceeded", "rule.approval_required"}},
		"suspended":     {func(d *desk) { d.register(acme, obj{"version": 2, "status": "suspended"}) }, "deny", []string{"policy.inactive", "rule.approval_required"}},
		"blocked": {func(d *desk) { d.register(acme, obj{"version": 2, "blocked_resource_patterns": []string{"prod/**"}}) },
			"deny", []string{"resource.blocked", "rule.approval_required"}},
		"another agent's policy": {func(d *desk) { d.register(acme, obj{"version": 2, "agent_id": "other"}) },
			"approval_required", []string{"agent.mismatch", "rule.approval_required", "approval.out_of_scope"}},
		"a rule that denies": {func(d *desk) { d.rule(acme, costly, `{"decision":"deny"}`) }, "deny", []string{"rule.deny"}},
		"the rule changed": {func(d *desk) {
			d.do("PATCH", "/v1/rules/"+d.ruleID, d.operator(acme), obj{"description": "other"}).wantStatus(http.StatusOK)
		}, "approval_required", []string{"rule.approval_required", "approval.out_of_scope"}},
		"another rule in its place": {func(d *desk) {
			d.do("DELETE", "/v1/rules/"+d.ruleID, d.operator(acme), nil)
			d.ruleID = d.rule(acme, costly, persons)
		}, "approval_required", []string{"rule.approval_required", "approval.out_of_scope"}},
		"the rule is gone": {func(d *desk) { d.do("DELETE", "/v1/rules/"+d.ruleID, d.operator(acme), nil) }, "allow", []string{"policy.allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			body, id := d.hold()
			d.approve(id)
			tc.between(d)
			r := d.redeem(body, id)
			wantCodes(t, r, tc.want, tc.codes...)
			if again := d.redeem(body, id); string(again.body) != string(r.body) {
				t.Errorf("the same again = %s, want %s: one approval, one answer", again.body, r.body)
			}
			var got result
			r.into(&got)
			if a := d.look(id); a.Status != approval.Used || a.UsedBy != got.DecisionID {
				t.Errorf("the approval is %s by %q, want it used by %s", a.Status, a.UsedBy, got.DecisionID)
			}
			if tc.want != "approval_required" {
				return
			}
			if a := d.look(got.DecisionID); a.Status != approval.Pending {
				t.Errorf("what was out of scope is %s, want an approval of its own, pending", a.Status)
			}
			d.approve(got.DecisionID)
			wantCodes(t, d.redeem(body, got.DecisionID), "allow", "approval.granted")
		})
	}
}

func TestApprovals_OfAnotherIntentOrOrganization(t *testing.T) {
	d := openDesk(t)
	body, id := d.hold()
	d.approve(id)
	more := maps.Clone(body)
	more["intent"] = maps.Clone(body["intent"].(obj))
	maps.Copy(more["intent"].(obj), cost(820_000))
	d.redeem(more, id).wantProblem(http.StatusConflict, codeIntentConflict)
	maps.Copy(more["intent"].(obj), obj{"intent_id": uuid.NewString()})
	d.redeem(more, id).wantProblem(http.StatusConflict, codeIntentConflict)

	d.redeem(body, uuid.NewString()).wantProblem(http.StatusNotFound, "approval_not_found")
	var allowed result
	d.evaluate(acme, intent()).into(&allowed)
	d.redeem(body, allowed.DecisionID).wantProblem(http.StatusNotFound, "approval_not_found")
	d.redeem(body, "x").wantField("approval_id")
	d.judge(allowed.DecisionID, "approved").wantProblem(http.StatusNotFound, "approval_not_found")

	d.register(rival)
	none := d.do("POST", "/v1/policy/evaluate", d.operator(rival), under(body, uuid.NewString()))
	theirs := d.do("POST", "/v1/policy/evaluate", d.operator(rival), under(body, id))
	theirs.wantProblem(http.StatusNotFound, "approval_not_found")
	if theirs.status != none.status {
		t.Errorf("another organization's approval = %d, one that is not there %d", theirs.status, none.status)
	}
	d.do("GET", "/v1/approvals/"+id, d.operator(rival), nil).wantProblem(http.StatusNotFound, "approval_not_found")
	d.do("PATCH", "/v1/approvals/"+id, d.operator(rival), obj{"status": "rejected"}).wantProblem(http.StatusNotFound, "approval_not_found")
	wantCodes(t, d.redeem(body, id), "allow", "approval.granted")
}

func TestApprovals_NotGivenOrNoLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(d *desk, id string)
		code    string
		status  approval.Status
	}{
		"rejected": {func(d *desk, id string) { d.judge(id, "rejected").wantStatus(http.StatusOK) }, "approval.rejected", approval.Rejected},
		"revoked": {func(d *desk, id string) {
			d.approve(id)
			first := d.judge(id, "revoked").wantStatus(http.StatusOK)
			if again := d.judge(id, "revoked"); string(again.body) != string(first.body) {
				t.Errorf("revoked again = %s, want %s", again.body, first.body)
			}
		}, "approval.revoked", approval.Revoked},
		"expired": {func(d *desk, id string) {
			d.clock.advance(time.Hour)
			d.judge(id, "approved").wantProblem(http.StatusConflict, codeApprovalExpired)
		}, "approval.expired", approval.Expired},
		"not used in time": {func(d *desk, id string) {
			d.judge(id, "approved", obj{"approved_for": 10}).wantStatus(http.StatusOK)
			d.clock.advance(10 * time.Second)
			d.judge(id, "revoked").wantProblem(http.StatusConflict, codeApprovalExpired)
		}, "approval.expired", approval.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			body, id := d.hold()
			d.judge(id, "revoked").wantProblem(http.StatusConflict, codeApprovalPending)
			tc.between(d, id)
			r := d.redeem(body, id)
			wantCodes(t, r, "deny", "rule.approval_required", tc.code)
			if again := d.redeem(body, id); string(again.body) != string(r.body) {
				t.Errorf("the same again = %s, want %s", again.body, r.body)
			}
			d.clock.advance(-time.Second) // a clock that goes back brings nothing back
			if a := d.look(id); a.Status != tc.status && name != "not used in time" {
				t.Errorf("status = %s, want %s", a.Status, tc.status)
			}
			if name == "expired" {
				d.judge(id, "approved").wantProblem(http.StatusConflict, codeApprovalExpired)
			}
		})
	}
}

func TestApprovals_NobodyApprovesWhatTheyAskedFor(t *testing.T) {
	d := openDesk(t)
	both := []string{"policy:evaluate", "approvals:decide", "tokens:write"}
	maker, _ := d.key(acme, both...)
	made := func(by string) string {
		var out tokenSecret
		d.do("POST", "/v1/tokens", by, obj{"name": "n", "scopes": both}).wantStatus(http.StatusCreated).into(&out)
		return out.Token
	}
	self, sibling := made(maker), made(maker)
	child := made(self)
	body := intent(cost(82_000))
	var got result
	d.do("POST", "/v1/policy/evaluate", self, body).wantStatus(http.StatusOK).into(&got)
	for name, token := range map[string]string{"itself": self, "its maker": maker, "its maker's": sibling, "its own": child} {
		if p := d.do("PATCH", "/v1/approvals/"+got.DecisionID, token, obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeApprovalSelf); p.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
	}
	d.do("PATCH", "/v1/approvals/"+got.DecisionID, d.operator(acme), obj{"status": "approved"}).wantStatus(http.StatusOK)

	d.evaluate(acme, intent(cost(82_000))).into(&got)
	d.do("PATCH", "/v1/approvals/"+got.DecisionID, d.operator(acme), obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeApprovalSelf)
	minted, _ := d.key(acme, "approvals:decide")
	for _, token := range []string{minted, d.approver} {
		d.do("PATCH", "/v1/approvals/"+got.DecisionID, token, obj{"status": "approved"}).wantProblem(http.StatusForbidden, codeApprovalSelf)
	}
}

// A key that asked may look its own approval up, and no other.
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
	for range 5 {
		_, id := d.hold()
		ids = append([]string{id}, ids...)
	}
	_, theirs := d.hold(obj{"agent_id": "mail-bot"})
	d.approve(ids[1])
	d.judge(ids[3], "rejected").wantStatus(http.StatusOK)
	all := append([]string{theirs}, ids...)
	for query, want := range map[string][]string{
		"":                                      all,
		"&status=pending":                       {theirs, ids[0], ids[2], ids[4]},
		"&status=approved":                      {ids[1]},
		"&status=rejected":                      {ids[3]},
		"&status=expired":                       nil,
		"&status=pending&agent_id=ci":           {ids[0], ids[2], ids[4]},
		"&status=pending&agent_id=mail-bot":     {theirs},
		"&agent_id=mail-bot":                    {theirs},
		"&status=approved&agent_id=mail-bot":    nil,
		"&status=pending&policy_id=" + policyID: {theirs, ids[0], ids[2], ids[4]},
		"&status=pending&agent_id=ci&policy_id=" + uuid.NewString(): nil,
	} {
		if diff := cmp.Diff(want, d.list(query)); diff != "" {
			t.Errorf("list of %q: -want +got\n%s", query, diff)
		}
	}
	d.do("GET", "/v1/approvals?status=open", d.reader, nil).wantField("status")
	d.clock.advance(time.Hour)
	if got := d.list("&status=pending"); got != nil {
		t.Errorf("pending after they expired: %v, want none", got)
	}
	if diff := cmp.Diff([]string{theirs, ids[0], ids[1], ids[2], ids[4]}, d.list("&status=expired")); diff != "" {
		t.Errorf("expired: -want +got\n%s", diff)
	}
	d.clock.advance(storage.MaxSkew + time.Second)
	must(t, d.server.decisions.Approvals.Sweep(context.Background()))
	if left, err := d.docs.Lapsed(context.Background(), d.clock.Now().Add(time.Hour), 10); err != nil || len(left) != 0 {
		t.Errorf("details after the sweep = %v, %v; want none", left, err)
	}
	if a := d.look(ids[0]); a.Status != approval.Expired || a.Metadata != nil || len(a.Findings) != 1 {
		t.Errorf("expired and swept = %+v, want it without values", a)
	}
}

func TestApprovals_ALookUpWaits(t *testing.T) {
	d := openDesk(t)
	body, id := d.hold()
	answers := make(chan approval.Status, 2)
	for range 2 {
		go func() {
			var a approvalBody
			d.do("GET", "/v1/approvals/"+id+"?wait=60", d.asker, nil).into(&a)
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

// Of 2,000 look-ups that want to wait some do, which takes nothing from decisions, the others
// are refused at once, and a shutdown answers those that wait.
func TestApprovals_SoManyLookUpsWaitAndNoMore(t *testing.T) {
	d := openDesk(t)
	_, id := d.hold()
	d.client.Timeout = time.Minute
	const asked, most = 2_000, 512
	statuses := make(chan int, asked)
	var all sync.WaitGroup
	// So many connections at once. All may be answered with 200: those that do not wait yet
	// when the server shuts down no longer do.
	places := make(chan struct{}, most+32)
	for range asked {
		places <- struct{}{}
		all.Go(func() {
			r := d.do("GET", "/v1/approvals/"+id+"?wait=60", d.asker, nil)
			if r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") == "" {
				t.Error("a refusal without Retry-After")
			}
			statuses <- r.status
			<-places
		})
	}
	d.hold() // decisions go on
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

func TestApprovals_TwoApproversRace(t *testing.T) {
	d := openDesk(t)
	second, _ := d.key(acme, "approvals:decide")
	for range 200 {
		body, id := d.hold()
		var wg sync.WaitGroup
		answers := make([]*reply, 2)
		for i, token := range []string{d.approver, second} {
			wg.Go(func() {
				answers[i] = d.do("PATCH", "/v1/approvals/"+id, token, obj{"status": []string{"approved", "rejected"}[i]})
			})
		}
		wg.Wait()
		won := 0
		if answers[0].status != http.StatusOK {
			won = 1
		}
		answers[won].wantStatus(http.StatusOK)
		answers[1-won].wantProblem(http.StatusConflict, codeApprovalDecided)
		wantDecision(t, d.redeem(body, id), []string{"allow", "deny"}[won])
	}
}

func TestApprovals_AHundredRedemptionsAreOneAllow(t *testing.T) {
	d := openDesk(t, func(c *setup) { c.Service.Queue = 10 * time.Second })
	body, id := d.hold()
	d.approve(id)
	answers := make([]*reply, 100)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = d.redeem(body, id) })
	}
	wg.Wait()
	fresh := 0
	for _, r := range answers {
		wantDecision(t, r, "allow")
		if string(r.body) != string(answers[0].body) {
			t.Fatalf("answers %s and %s, want one", r.body, answers[0].body)
		}
		if r.header.Get(headerReplayed) == "" {
			fresh++
		}
	}
	if rows := d.history(acme); fresh != 1 || len(rows) != 2 {
		t.Errorf("%d fresh answers and %d rows, want 1 and 2", fresh, len(rows))
	}
}

// Revoking and redeeming race: one of them wins, and both say so.
func TestApprovals_RedeemRacesRevoke(t *testing.T) {
	d := openDesk(t)
	for range 100 {
		body, id := d.hold()
		d.approve(id)
		var wg sync.WaitGroup
		var used, revoked *reply
		wg.Go(func() { used = d.redeem(body, id) })
		wg.Go(func() { revoked = d.judge(id, "revoked") })
		wg.Wait()
		if revoked.status == http.StatusOK {
			wantCodes(t, used, "deny", "rule.approval_required", "approval.revoked")
			continue
		}
		revoked.wantProblem(http.StatusConflict, codeApprovalDecided)
		wantCodes(t, used, "allow", "approval.granted")
	}
}

// Approving and asking race at the moment of expiry: the ledger has one of the two.
func TestApprovals_ApproveRacesExpiry(t *testing.T) {
	d := openDesk(t)
	for range 50 {
		body, id := d.hold()
		d.clock.advance(time.Hour - time.Millisecond)
		var wg sync.WaitGroup
		var asked, judged *reply
		wg.Go(func() { d.clock.advance(time.Millisecond); asked = d.redeem(body, id) })
		wg.Go(func() { judged = d.judge(id, "approved") })
		wg.Wait()
		if judged.status != http.StatusOK {
			judged.wantProblem(http.StatusConflict, codeApprovalExpired)
			wantCodes(t, d.redeem(body, id), "deny", "rule.approval_required", "approval.expired")
		} else if got := codes(asked); !slices.Equal(got, []string{"approval.granted"}) {
			wantCodes(t, d.redeem(body, id), "allow", "approval.granted")
		}
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

// Whatever fails, nothing is allowed, and what failed can be asked again.
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

// A core hears of the approval, and is held to the same rule.
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

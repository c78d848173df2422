package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

// heap returns the bytes of live objects on the heap.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident compiles n policies. It returns the policies and the number of bytes that each keeps
// alive.
func resident(t *testing.T, n int, doc func(int) *engine.ActionPolicy) (policies []*engine.Policy, each int) {
	t.Helper()
	policies = make([]*engine.Policy, n)
	before := heap()
	for i := range policies {
		policies[i] = mustCompile(t, doc(i))
	}
	each = int(heap()-before) / n
	runtime.KeepAlive(policies)
	return policies, each
}

// TestPolicy_Size checks that a compiled policy with its document takes at most 6 KiB, and that
// Size returns about its actual size.
func TestPolicy_Size(t *testing.T) {
	const n, limit = 200, 6 << 10
	mustCompile(t, corpus.ReferencePolicy())
	policies, each := resident(t, n, corpus.Policy)
	size := policies[0].Size()
	t.Logf("%d bytes resident, Size() = %d", each, size)
	if each > limit || size > limit {
		t.Errorf("a compiled policy takes %d bytes (Size() = %d), want at most %d", each, size, limit)
	}
	if size < each*7/10 || size > each*3/2 {
		t.Errorf("Size() = %d, want about the measured %d", size, each)
	}
}

// TestPolicy_SharesWhatIsEqual checks that policies with equal contents share their compiled form
// across versions and organizations.
func TestPolicy_SharesWhatIsEqual(t *testing.T) {
	const n, limit = 200, 2 << 10
	first := mustCompile(t, corpus.Policy(0))
	if _, each := resident(t, n, func(i int) *engine.ActionPolicy {
		doc := corpus.Policy(0)
		doc.OrganizationID, doc.Version = fmt.Sprint("org-", i), int64(i+1)
		return doc
	}); each > limit {
		t.Errorf("a policy that is equal to another takes %d bytes, want at most %d", each, limit)
	}
	runtime.KeepAlive(first)
}

func TestPolicy_SizeOfAGreatOne(t *testing.T) {
	const n = 5
	doc := func(n int) *engine.ActionPolicy {
		p := corpus.Policy(n)
		for i := range 900 {
			p.AllowedActionTypes = append(p.AllowedActionTypes, fmt.Sprintf("task.number_%d", i))
			p.BlockedResourcePatterns = append(p.BlockedResourcePatterns, fmt.Sprintf("vault/team-%d/**", i))
		}
		return p
	}
	policies, each := resident(t, n, doc)
	if size := policies[0].Size(); size < each*6/10 || size > each*2 {
		t.Errorf("Size() = %d, want about the measured %d", size, each)
	}
}

func TestCompilePolicy_Document(t *testing.T) {
	doc := corpus.ReferencePolicy()
	if diff := cmp.Diff(doc, mustCompile(t, doc).Document()); diff != "" {
		t.Errorf("Document() is not the policy that was compiled:\n%s", diff)
	}
}

func TestCompilePolicy_RefusesWhatIsInvalid(t *testing.T) {
	if _, err := engine.CompilePolicy(nil); err == nil {
		t.Error("CompilePolicy(nil) succeeded")
	}
	doc := corpus.ReferencePolicy()
	doc.Status = "enabled"
	if _, err := engine.CompilePolicy(doc); err == nil {
		t.Error("CompilePolicy of a policy with an unknown status succeeded")
	}
}

func TestChecks_LeavesOutWhatCannotFail(t *testing.T) {
	codes := func(p *engine.ActionPolicy) []engine.Code {
		var all []engine.Code
		for _, c := range engine.Checks(p) {
			all = append(all, c.Code)
		}
		return all
	}
	full := []engine.Code{
		engine.CodeOrganizationStopped, engine.CodePolicyInactive, engine.CodeAgentDisabled, engine.CodeAgentUnregistered, engine.CodeAgentMismatch,
		engine.CodeActionDenied, engine.CodeActionNotAllowed, engine.CodeResourceBlocked, engine.CodeResourceNotAllowed,
		engine.CodeCostExceeded, engine.CodeCostCurrency, engine.CodeUsageLimit,
	}
	if got := codes(corpus.ReferencePolicy()); !slices.Equal(got, full) {
		t.Errorf("Checks of the reference policy = %v, want %v", got, full)
	}
	bare := &engine.ActionPolicy{AllowedActionTypes: []string{}}
	want := []engine.Code{
		engine.CodeOrganizationStopped, engine.CodePolicyInactive, engine.CodeAgentDisabled, engine.CodeAgentUnregistered, engine.CodeAgentMismatch,
		engine.CodeActionNotAllowed, engine.CodeUsageLimit,
	}
	if got := codes(bare); !slices.Equal(got, want) {
		t.Errorf("Checks of a bare policy = %v, want %v", got, want)
	}
}

// TestChecks_QuoteWhatAuthorsWrite checks that authors' texts cannot break out of a rendering.
func TestChecks_QuoteWhatAuthorsWrite(t *testing.T) {
	doc := corpus.ReferencePolicy()
	doc.AgentID = `bot"; true || "\` + "`"
	doc.BlockedResourcePatterns = []string{`a") || ("b`, "prod/`x`/*", `back\\slash/*`, "emoji-😀/*"}
	p := mustCompile(t, doc)
	in := allowedInput()
	if got := engine.Evaluate(p, nil, in).Decision; got != engine.ApprovalRequired {
		t.Errorf("another agent = %v, want approval_required", got)
	}
	in.Intent.Resource = "emoji-😀/x"
	want := `resource.blocked: the resource matches the blocked pattern "emoji-😀/*"`
	if got := engine.Evaluate(p, nil, in).Reasons(); !slices.Contains(got, want) {
		t.Errorf("Evaluate of a blocked resource = %q, want %q", got, want)
	}
}

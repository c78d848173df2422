package api

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"writ.example/writ/api/operator"
	"writ.example/writ/storage"
)

// visitor is a browser without scripts.
type visitor struct {
	h      *harness
	cookie *http.Cookie
}

// view is what a browser gets.
type view struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

func (b *visitor) do(method, path string, form url.Values, header ...string) *view {
	b.h.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, "http://"+b.h.addr+path, body)
	must(b.h.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else if req.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			req.Header.Del(header[i])
		}
	}
	if b.cookie != nil {
		req.AddCookie(b.cookie)
	}
	client := *b.h.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	must(b.h.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(b.h.t, err)
	for _, c := range res.Cookies() {
		if b.cookie = c; c.MaxAge < 0 {
			b.cookie = nil
		}
	}
	return &view{b.h.t, method + " " + path, res.StatusCode, res.Header, string(text)}
}

func (b *visitor) get(path string) *view {
	b.h.t.Helper()
	return b.do("GET", path, nil)
}

func (v *view) want(status int, texts ...string) *view {
	v.t.Helper()
	if v.status != status {
		v.t.Fatalf("%s = %d, want %d; body %.600s", v.what, v.status, status, v.body)
	}
	for _, text := range texts {
		if !strings.Contains(v.body, text) {
			v.t.Errorf("%s = %s, want %q in it", v.what, v.body, text)
		}
	}
	return v
}

func (v *view) wantTo(to string) {
	v.t.Helper()
	if got := v.want(http.StatusSeeOther).header.Get("Location"); got != to {
		v.t.Errorf("%s leads to %s, want %s", v.what, got, to)
	}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="(organization|revision)" value="([^"]*)">`)

// form returns the hidden members of the first form that has them.
func (v *view) form(more ...string) url.Values {
	v.t.Helper()
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(v.body, 2) {
		form.Set(m[1], m[2])
	}
	if form.Get("organization") == "" {
		v.t.Fatalf("%s has no form with an organization", v.what)
	}
	for i := 0; i < len(more); i += 2 {
		form.Add(more[i], more[i+1])
	}
	return form
}

// visit returns a browser that is signed in with a credential.
func (h *harness) visit(credential string) *visitor {
	h.t.Helper()
	b := &visitor{h: h}
	b.do("POST", "/console/login", url.Values{"credential": {credential}}).wantTo("/console")
	return b
}

func TestConsole_SigningIn(t *testing.T) {
	h := start(t)
	b := &visitor{h: h}
	b.get("/console/decisions?decision=deny").wantTo("/console/login?next=%2Fconsole%2Fdecisions%3Fdecision%3Ddeny")
	if got := b.do("POST", "/console/login", url.Values{"credential": {"writ_wrong"}}).want(http.StatusUnauthorized, `role="alert"`); got.header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong token set the cookie %s", got.header.Get("Set-Cookie"))
	}
	b.do("POST", "/console/login", url.Values{"credential": {h.operator(acme)}, "next": {"/console/agents?x=1"}}).wantTo("/console/agents?x=1")
	c := b.cookie
	if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/console" || c.Secure || strings.Contains(c.Value, "ey") && strings.Contains(h.operator(acme), c.Value) {
		t.Fatalf("cookie = %+v, want HttpOnly, Lax, below /console, and no credential that can be read", c)
	}
	if want := h.clock.Now().Add(12 * time.Hour); !c.Expires.Equal(want) {
		t.Errorf("the cookie expires at %v, want %v", c.Expires, want)
	}
	page := b.get("/console").want(http.StatusOK, "<h1>Overview</h1>", acme)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":           "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	b.get("/console/logout").want(http.StatusNotFound)
	b.get("/console").want(http.StatusOK)
	b.do("POST", "/console/logout", url.Values{}).wantTo("/console/login?reason=out")
	if b.cookie != nil {
		t.Error("signing out left the cookie")
	}
}

// TestConsole_ACookieIsNoCredentialOfTheAPI holds "The API never reads cookies".
func TestConsole_ACookieIsNoCredentialOfTheAPI(t *testing.T) {
	h := start(t)
	b := h.visit(h.operator(acme))
	b.get("/v1/credential").want(http.StatusUnauthorized)
	b.do("GET", "/v1/credential", nil, "Authorization", "Bearer "+b.cookie.Value).want(http.StatusUnauthorized)
	forged := *b.cookie
	forged.Value = "A" + forged.Value[1:]
	(&visitor{h, &forged}).get("/console").wantTo("/console/login")
}

func TestConsole_SessionsEnd(t *testing.T) {
	h := start(t)
	key, id := h.key(acme, "history:read")
	short, err := operator.Sign([]byte(testSecret), acme, "op", h.clock.Now(), time.Hour)
	must(t, err)
	lasting, _ := h.key(acme, "agents:read")
	b, soon, late := h.visit(key), h.visit(short), h.visit(lasting)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	b.get("/console").wantTo("/console/login?reason=refused")
	(&visitor{h: h}).get("/console/login?reason=refused").want(http.StatusOK, "no longer accepts")
	h.clock.advance(13 * time.Hour)
	soon.get("/console/agents").wantTo("/console/login?next=%2Fconsole%2Fagents&reason=expired")
	late.get("/console/agents").wantTo("/console/login?next=%2Fconsole%2Fagents&reason=ended")
}

func TestConsole_NextLeadsOnlyBelowTheConsole(t *testing.T) {
	h := start(t)
	for _, next := range []string{"https://evil.example", "//evil.example/console", "/\\evil.example", "/v1/docs", "/consolex", "javascript:alert(1)",
		"/console/../v1/docs", "/console/%2e%2e/x", "/console//evil.example", "\t//evil.example", ""} {
		b := &visitor{h: h}
		b.do("POST", "/console/login", url.Values{"credential": {h.operator(acme)}, "next": {next}}).wantTo("/console")
	}
}

// TestConsole_PostsOfOthersAreRefused holds which POSTs are from a form of the console.
func TestConsole_PostsOfOthersAreRefused(t *testing.T) {
	h := start(t)
	b := h.visit(h.operator(acme))
	own := "http://" + h.addr
	for _, c := range []struct {
		site, origin, mode string
		want               int
	}{
		{"same-origin", "", "navigate", http.StatusSeeOther},
		{"same-origin", "", "", http.StatusSeeOther},
		{"", own, "", http.StatusSeeOther},
		{"cross-site", own, "navigate", http.StatusForbidden},
		{"same-site", own, "navigate", http.StatusForbidden},
		{"none", own, "navigate", http.StatusForbidden},
		{"same-origin", own, "cors", http.StatusForbidden},
		{"same-origin", own, "no-cors", http.StatusForbidden},
		{"", "http://evil.example", "", http.StatusForbidden},
		{"", "null", "", http.StatusForbidden},
		{"", "", "", http.StatusForbidden},
	} {
		for _, path := range []string{"/console/login", "/console/logout"} {
			browser := &visitor{h, b.cookie}
			got := browser.do("POST", path, url.Values{"credential": {h.operator(acme)}}, "Sec-Fetch-Site", c.site, "Origin", c.origin, "Sec-Fetch-Mode", c.mode)
			if got.status != c.want {
				t.Errorf("POST %s with %+v = %d", path, c, got.status)
			}
		}
	}
}

// TestConsole_PlainHTTPIsForLoopbackNames holds that another site cannot give its own name the address of this host.
func TestConsole_PlainHTTPIsForLoopbackNames(t *testing.T) {
	h := start(t)
	_, port, _ := strings.Cut(h.addr, ":")
	for host, want := range map[string]int{
		"localhost:" + port: http.StatusOK, "[::1]:" + port: http.StatusOK, "127.0.0.1": http.StatusOK,
		"evil.example": http.StatusForbidden, "10.0.0.1:" + port: http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
	} {
		(&visitor{h: h}).do("GET", "/console/login", nil, "Host", host).want(want)
	}
	behind := start(t, func(c *setup) { c.Hosted.APIURL = "https://writ.example" })
	b := &visitor{h: behind}
	b.do("GET", "/console/login", nil, "Host", "writ.example").want(http.StatusOK)
	form := url.Values{"credential": {behind.operator(acme)}}
	b.do("POST", "/console/login", form, "Sec-Fetch-Site", "", "Origin", "https://writ.example").want(http.StatusSeeOther)
	if b.cookie == nil || !b.cookie.Secure {
		t.Errorf("cookie over https = %+v, want Secure", b.cookie)
	}
	b.do("POST", "/console/login", form, "Sec-Fetch-Site", "", "Origin", "http://writ.example").want(http.StatusForbidden)
}

func TestConsole_FailedSignInsAreCountedForTheAddress(t *testing.T) {
	h := start(t, func(c *setup) { c.RateLimits.Address.PerSecond, c.RateLimits.Address.Burst = 1, 8 })
	b := &visitor{h: h}
	for range 10 {
		if b.do("POST", "/console/login", url.Values{"credential": {"writ_wrong"}}).status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("10 wrong tokens from one address met no limit")
}

// TestConsole_ShowsOneOrganization holds that a page has nothing of another organization, and that a form made for
// another one changes nothing.
func TestConsole_ShowsOneOrganization(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.decision(h.operator(acme))
	agent := h.namedAgent(acme, "Secret agent")
	mine, other := h.visit(h.operator(acme)), h.visit(h.operator(rival))
	mine.get("/console/decisions").want(http.StatusOK, id)
	mine.get("/console/decisions/"+id).want(http.StatusOK, "Allowed")
	mine.get("/console/agents/"+agent).want(http.StatusOK, "Secret agent")
	for _, path := range []string{"/console/decisions/" + id, "/console/agents/" + agent, "/console/agents/" + agent + "/disable", "/console/approvals/" + id} {
		other.get(path).want(http.StatusNotFound)
	}
	for _, path := range []string{"/console", "/console/decisions", "/console/agents"} {
		if page := other.get(path).want(http.StatusOK); strings.Contains(page.body, id) || strings.Contains(page.body, "Secret agent") {
			t.Errorf("GET %s of %s shows what is %s's", path, rival, acme)
		}
	}
	form := mine.get("/console/agents/" + agent + "/disable").form()
	other.do("POST", "/console/agents/"+agent+"/disable", form).want(http.StatusConflict, rival)
	mine.do("POST", "/console/agents/"+agent+"/disable", form).wantTo("/console/agents/" + agent + "?done=disabled")
	mine.get("/console/agents/"+agent+"?done=disabled").want(http.StatusOK, "in force on every replica")
}

// namedAgent registers an agent and returns its id.
func (h *harness) namedAgent(org, name string) string {
	h.t.Helper()
	return read[struct {
		ID string `json:"id"`
	}](h.do("POST", "/v1/agents", h.operator(org), obj{"name": name}).wantStatus(http.StatusCreated)).ID
}

// TestConsole_AFormForAnotherStateIsRefused holds that enabling, approving and making a key need the state that was
// shown, and that stopping never does.
func TestConsole_AFormForAnotherStateIsRefused(t *testing.T) {
	h := start(t)
	agent := h.namedAgent(acme, "bot")
	b := h.visit(h.operator(acme))
	enable := b.get("/console/agents/" + agent + "/enable").form() // shown while it was active
	b.do("POST", "/console/agents/"+agent+"/disable", b.get("/console/agents/"+agent+"/disable").form()).want(http.StatusSeeOther)
	b.do("POST", "/console/agents/"+agent+"/enable", enable).want(http.StatusConflict, "disabled")
	stop := enable
	stop.Set("revision", "shown long ago")
	b.do("POST", "/console/agents/"+agent+"/disable", stop).want(http.StatusSeeOther)

	form := b.get("/console/keys/new").form("name", "ci", "scope", "history:read")
	b.do("POST", "/console/keys", form).want(http.StatusCreated, "writ_")
	b.do("POST", "/console/keys", form).want(http.StatusConflict, "No key was made")
	if keys := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil)); len(keys) != 1 || keys[0].Name != "ci" {
		t.Errorf("the form made %+v, want one key", keys)
	}
}

// TestConsole_AnAgentThatIsNotRegisteredCanBeDisabled holds that the list of agents has those that asked and have no kill
// switch, and that one registers and disables them there.
func TestConsole_AnAgentThatIsNotRegisteredCanBeDisabled(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "a", "externalId": "registered"}).wantStatus(http.StatusCreated)
	evaluate := func(name string) { h.decision(h.operator(acme), obj{"agent_id": name}) }
	evaluate("Night/Bot")
	evaluate("REGISTERED")
	b := h.visit(h.operator(acme))
	page := b.get("/console/agents").want(http.StatusOK, "Not registered", `href="/console/agents/new?id=night%2fbot"`)
	if strings.Contains(page.body, "new?id=registered") {
		t.Error("a registered agent is listed as one that is not")
	}
	form := b.get("/console/agents/new?id=night%2Fbot").want(http.StatusOK, `value="night/bot"`).form("id", "night/bot")
	made := b.do("POST", "/console/agents", form).want(http.StatusSeeOther).header.Get("Location")
	b.get(made).want(http.StatusOK, "Registered: from now on it can be disabled.", "Disable", "<h1>night/bot</h1>")
	b.do("POST", "/console/agents", form).want(http.StatusBadRequest, "is the id of another agent")
	if page := b.get("/console/agents"); strings.Contains(page.body, "Not registered") {
		t.Error("an agent that was registered is still listed as one that is not")
	}
	path, _, _ := strings.Cut(made, "?")
	b.do("POST", path+"/disable", b.get(path+"/disable").form()).wantTo(path + "?done=disabled")
	evaluate("NIGHT/bot")
	b.get("/console/decisions?agent_id=night/bot").want(http.StatusOK, "agent.disabled")
}

// TestConsole_SaysWhatARevisionOfARuleChanged holds that the page of a rule shows the members that a change changed.
func TestConsole_SaysWhatARevisionOfARuleChanged(t *testing.T) {
	h := start(t)
	h.register(acme)
	rule := h.rule(acme, `{"action_type":"deploy"}`, `{"decision":"deny"}`)
	h.decision(h.operator(acme)) // a revision is kept if a row was decided under it
	h.do("PATCH", "/v1/rules/"+rule, h.operator(acme), obj{"action": `{"decision":"approval_required"}`}).wantStatus(http.StatusOK)
	page := h.visit(h.operator(acme)).get("/console/rules/"+rule).want(http.StatusOK, "<del>{&#34;decision&#34;:&#34;deny&#34;}</del>",
		"<ins>{&#34;decision&#34;:&#34;approval_required&#34;}</ins>")
	if strings.Contains(page.body, "<ins>{&#34;action_type") || strings.Contains(page.body, ">updatedAt<") {
		t.Error("what did not change, or the time, is shown as changed")
	}
}

// TestConsole_AKeyIsMadeAndRevoked holds that a form without a scope says what is missing, and that the list says that a
// key is revoked.
func TestConsole_AKeyIsMadeAndRevoked(t *testing.T) {
	h := start(t)
	b := h.visit(h.operator(acme))
	form := b.get("/console/keys/new").form("name", "ci")
	b.do("POST", "/console/keys", form).want(http.StatusBadRequest, "check at least one scope")
	form.Add("scope", "history:read")
	b.do("POST", "/console/keys", form).want(http.StatusCreated, "writ_")
	id := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil))[0].ID
	b.get("/console/keys?revoked=" + id).want(http.StatusOK)
	if page := b.get("/console/keys?revoked=" + id); strings.Contains(page.body, "in force on any replica") {
		t.Error("a key that is in force is said to be revoked")
	}
	b.do("POST", "/console/keys/"+id+"/revoke", b.get("/console/keys/"+id+"/revoke").form()).wantTo("/console/keys?revoked=" + id)
	b.get("/console/keys?revoked="+id).want(http.StatusOK, "No key with the id <code>"+id)
}

// TestConsole_StopsEverything holds that the button of every page leads to a stop in two steps, and that resuming is
// refused if there was another stop meanwhile.
func TestConsole_StopsEverything(t *testing.T) {
	h := start(t)
	h.register(acme)
	b := h.visit(h.operator(acme))
	b.get("/console").want(http.StatusOK, "Stop everything")
	stop := b.get("/console/stop").want(http.StatusOK, "Stop everything?").form("status", "stopped")
	b.do("POST", "/console/stop", stop).wantTo("/console/stop?done=stopped")
	resume := b.get("/console/stop?done=stopped").want(http.StatusOK, "in force on every replica", "Resume").form("status", "active")
	b.get("/console").want(http.StatusOK, "Everything is stopped")
	if id := h.decision(h.operator(acme)); !strings.Contains(b.get("/console/decisions/"+id).body, "Denied") {
		t.Error("a decision of a stopped organization is no deny")
	}
	b.do("POST", "/console/stop", resume).wantTo("/console/stop?done=active")
	if page := b.get("/console/stop?done=active").want(http.StatusOK, "Resumed: in force on every replica"); strings.Contains(page.body, `value="stopped"`) {
		t.Error("the page after resuming asks whether to stop everything")
	}
	b.do("POST", "/console/stop", resume).want(http.StatusConflict)
	b.do("POST", "/console/stop", stop).wantTo("/console/stop?done=stopped")
	other := h.visit(h.operator(rival))
	other.do("POST", "/console/stop", stop).want(http.StatusConflict)
	if page := other.get("/console"); strings.Contains(page.body, "Everything is stopped") {
		t.Error("a stop is of another organization")
	}
}

// TestConsole_Approvals holds what a person sees of a request, and that a verdict is about what was shown.
func TestConsole_Approvals(t *testing.T) {
	h := start(t)
	h.register(acme)
	b := h.visit(h.operator(acme))
	id, rejected := h.held(acme), h.held(acme)
	b.get("/console/approvals").want(http.StatusOK, id, rejected)
	page := b.get("/console/approvals/"+id).want(http.StatusOK, "Exactly what is approved", "Comment", "Approve", "Reject", "last hour")
	stale := page.form("verdict", "approved")
	stale.Set("revision", "pending, sha256:of something else")
	b.do("POST", "/console/approvals/"+id, stale).want(http.StatusConflict)
	form := page.form("verdict", "approved", "comment", "looks right")
	b.do("POST", "/console/approvals/"+id, form).wantTo("/console/approvals/" + id)
	b.get("/console/approvals/"+id).want(http.StatusOK, "looks right", "Revoke", "approved")
	b.do("POST", "/console/approvals/"+id, form).want(http.StatusConflict)
	b.do("POST", "/console/approvals/"+id, b.get("/console/approvals/"+id).form("verdict", "revoked")).wantTo("/console/approvals/" + id)
	b.do("POST", "/console/approvals/"+rejected, b.get("/console/approvals/"+rejected).form("verdict", "rejected", "revision", "shown long ago")).wantTo("/console/approvals/" + rejected)
	b.get("/console/approvals").want(http.StatusOK, "rejected", "revoked", "Nothing waits")
}

func TestConsole_SaysWhichScopeIsLacking(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "agents:read")
	b := h.visit(key)
	b.get("/console").want(http.StatusOK, "lacks the scope history:read", "lacks the scope approvals:read")
	for path, scope := range map[string]string{
		"/console/decisions": "history:read", "/console/approvals": "approvals:read", "/console/keys": "tokens:read",
		"/console/policies": "policy:read", "/console/rules": "rules:read", "/console/usage": "usage:read", "/console/chain": "history:read",
	} {
		b.get(path).want(http.StatusOK, "lacks the scope "+scope)
	}
	agent := h.namedAgent(acme, "bot")
	b.do("POST", "/console/agents/"+agent+"/disable", b.get("/console/agents/"+agent+"/disable").form()).want(http.StatusForbidden, "agents:write")
}

// TestConsole_HostileTextsAreText holds that a text of somebody else is neither markup nor hides what it is.
func TestConsole_HostileTextsAreText(t *testing.T) {
	h := start(t)
	h.register(acme)
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(1)>'`
	agent := h.namedAgent(acme, hostile)
	h.do("PUT", "/v1/lists/payees", h.operator(acme), obj{"values": []string{hostile, strings.Repeat("W", 256)}}).wantStatus(http.StatusCreated)
	id := h.decision(h.operator(acme), obj{"resource": "https://api.example.com/" + hostile, "metadata": obj{"note": hostile + "\u202egnp.exe"}})
	b := h.visit(h.operator(acme))
	for _, path := range []string{"/console", "/console/agents", "/console/agents/" + agent, "/console/agents/" + agent + "/disable", "/console/decisions", "/console/decisions/" + id,
		"/console/lists/payees", "/console/decisions?agent_id=" + url.QueryEscape(hostile), "/console/login?next=" + url.QueryEscape(hostile), "/console/policies/" + url.PathEscape(hostile)} {
		page := b.get(path)
		body := page.body
		// The only places with the text as it is are attributes and the row's JSON, in which it is data.
		if i := strings.Index(body, "<script>alert"); i >= 0 || strings.Contains(body, "<img src=x") {
			t.Errorf("GET %s has markup of somebody else", path)
		}
		shown := regexp.MustCompile(`(?s)<pre.*?</pre>|data-row="[^"]*"|value="[^"]*"|href="[^"]*"|data-stream="[^"]*"|action="[^"]*"`).ReplaceAllString(body, "")
		if strings.ContainsRune(shown, '\u202e') {
			t.Errorf("GET %s shows a character that turns the text around", path)
		}
		if !utf8.ValidString(body) {
			t.Errorf("GET %s is not UTF-8", path)
		}
	}
}

// TestConsole_SaysWhoChangedADocument holds that a page finds who changed its document, however much was changed since.
func TestConsole_SaysWhoChangedADocument(t *testing.T) {
	h := start(t)
	h.register(acme)
	rule := h.rule(acme, `{"action_type":"none"}`, `{"decision":"deny"}`)
	h.do("PUT", "/v1/lists/payees", h.operator(acme), obj{"values": []string{"a"}}).wantStatus(http.StatusCreated)
	changes := unsignedChanges{
		{Org: acme, Kind: storage.RuleKind, ID: rule, Revision: 1, Digest: [32]byte{1}, Actor: "operator:ann"},
		{Org: acme, Kind: storage.ListKind, ID: "payees", Revision: 2, Digest: [32]byte{1}, Actor: "operator:ben"},
		{Org: acme, Kind: storage.PolicyKind, ID: policyID + "/1", Revision: 3, Digest: [32]byte{1}, Actor: "operator:cem"},
	}
	for i := range 300 {
		changes = append(changes, storage.Change{Org: acme, Kind: storage.AgentKind, ID: "a", Revision: uint64(i + 4), Actor: "operator:dan"})
	}
	must(t, h.ledger.SignChanges(t.Context(), &changes))
	b := h.visit(h.operator(acme))
	for path, actor := range map[string]string{"/console/rules/" + rule: "ann", "/console/lists/payees": "ben", "/console/policies/" + policyID: "cem"} {
		if page := b.get(path).want(http.StatusOK, "operator:"+actor, `<td data-label="Time"><time datetime="20`); strings.Contains(page.body, "operator:dan") {
			t.Errorf("%s has a change of another document", path)
		}
	}
}

func TestConsole_EveryEntryOfTheNavigationIsAPage(t *testing.T) {
	h := start(t)
	b := h.visit(h.operator(acme))
	links := regexp.MustCompile(`<li><a href="(/console[^"]*)"[^>]*>([A-Z][a-z]+)</a></li>`).FindAllStringSubmatch(b.get("/console").body, -1)
	if len(links) != 12 {
		t.Fatalf("the navigation has %d entries, want 12", len(links))
	}
	for _, link := range links {
		page := b.get(link[1]).want(http.StatusOK, "<h1>"+link[2]+"</h1>", `href="`+link[1]+`" aria-current="page">`)
		if n := strings.Count(page.body, "<h1"); n != 1 {
			t.Errorf("GET %s has %d h1, want 1", link[1], n)
		}
	}
	b.get("/console/nothing").want(http.StatusNotFound, "no such page")
}

// TestConsole_FiltersAreThoseOfTheAPI holds that the address of a page has the filters, and that a wrong one is told.
func TestConsole_FiltersAreThoseOfTheAPI(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.decision(h.operator(acme))
	b := h.visit(h.operator(acme))
	b.get("/console/decisions?decision=allow&from=2026-11-20&to=2026-12-01T10:00").want(http.StatusOK, id)
	if page := b.get("/console/decisions?decision=deny").want(http.StatusOK, "No decision here matches"); strings.Contains(page.body, id) {
		t.Error("a filter for denied decisions shows an allowed one")
	}
	b.get("/console/decisions?agent_id=bill").want(http.StatusOK, "They compare whole values", `name="intent_id"`)
	b.get("/console/decisions?from=yesterday").want(http.StatusBadRequest, `role="alert"`, "RFC 3339")
	b.get("/console/decisions?colour=red").want(http.StatusBadRequest, "colour")
}

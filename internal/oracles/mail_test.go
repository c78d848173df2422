package oracles

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/idna"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

var addressTexts = flag.Int("addresses", 3_000, "how many texts with addresses to make")

const (
	onlyOurs = `{"metadata.to":{"$every":{"$glob":"*@ours.example"}}}`
	anyRival = `{"metadata.to":{"$some":{"$glob":"*@rival.example"}}}`
)

// recipients decides by a rule about metadata.to. The engine decides as it does for an intent.
type recipients struct {
	policy *engine.Policy
	rules  *engine.RuleSet
}

func newRecipients(t *testing.T, doc, outcome string) recipients {
	t.Helper()
	rule := func(id, doc, decision string, priority int64) engine.Rule {
		return engine.Rule{ID: id, Name: id, Condition: doc, Action: fmt.Sprintf(`{"decision":%q}`, decision), Priority: priority, IsActive: true}
	}
	rules := []engine.Rule{rule("1", doc, outcome, 2)}
	if outcome == "allow" {
		rules = append(rules, rule("2", "{}", "deny", 1))
	}
	set := engine.CompileRules(rules, engine.Options{})
	if broken := set.Broken(); len(broken) > 0 {
		t.Fatal(broken)
	}
	return recipients{mustPolicy(t, nil, nil), set}
}

func (r recipients) allows(to string) bool {
	in := &engine.Intent{
		IntentID: id, PolicyID: id, AgentID: "agent", ActionType: "email.send", Resource: "outbox", IssuedAt: "2026-01-02T03:04:05Z",
		Metadata: map[string]string{"to": to},
	}
	return in.Validate() == nil && engine.Evaluate(r.policy, r.rules, &engine.Input{Intent: in, Agent: engine.AgentActive}).Decision == engine.Allow
}

// delivery is an address to which a program delivers.
type delivery struct{ by, address string }

// UnmarshalJSON reads [by, address].
func (d *delivery) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&d.by, &d.address})
}

// mailers are the programs that deliver to the addresses in a text.
type mailers struct{ programs []*program }

// modules is where `make oracles` installs the packages of testdata/package.json.
var modules = filepath.Join("..", "..", "bin", "oracles-mail", "node_modules")

func newMailers(t *testing.T) mailers {
	t.Helper()
	path, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_PATH", path+string(os.PathListSeparator)+os.Getenv("NODE_PATH"))
	node := start(t, "node", "testdata/mail.js")
	var have []string
	if err := node.read(&have); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nodemailer", "nodemailer-7.0.6"} {
		if !slices.Contains(have, want) {
			t.Logf("SKIPPED %s: node cannot load it; `make oracles` installs it", want)
		}
	}
	return mailers{[]*program{node, start(t, interpreter(), "testdata/mail.py")}}
}

// deliver returns to whom the programs deliver each text. A program gets the members of a JSON array. It may get another
// text as it is, or the parts of it.
func (m mailers) deliver(t *testing.T, texts []string) [][]delivery {
	t.Helper()
	var asked []string
	var of []int
	for i, text := range texts {
		for _, given := range givenAs(text) {
			asked, of = append(asked, given), append(of, i)
		}
	}
	all := make([][]delivery, len(texts))
	for i, given := range asked {
		all[of[i]] = append(all[of[i]], goDeliveries(given)...)
	}
	for _, p := range m.programs {
		wrote := make(chan error, 1)
		go func() { wrote <- p.write(asked) }()
		for _, i := range of {
			var found []delivery
			if err := p.read(&found); err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], found...)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// givenAs returns the texts that an integration may hand to a mailer for the value of metadata.to.
func givenAs(text string) []string {
	given := []string{text}
	var members []string
	if json.Unmarshal([]byte(text), &members) == nil && members != nil {
		return members
	}
	for _, cut := range []string{",", ";", "\n"} {
		if parts := strings.Split(text, cut); len(parts) > 1 {
			given = append(given, parts...)
		}
	}
	return given
}

func goDeliveries(text string) (all []delivery) {
	if list, err := mail.ParseAddressList(text); err == nil {
		for _, a := range list {
			all = append(all, delivery{"net/mail", a.Address})
		}
	}
	if a, err := mail.ParseAddress(text); err == nil {
		all = append(all, delivery{"net/mail", a.Address})
	}
	return all
}

var hostname = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$`)

// domain returns the domain to which an address is delivered, or "" if nothing can be: the DNS has no such name.
func (d delivery) domain() string {
	at := strings.LastIndexByte(d.address, '@')
	if at < 0 {
		return ""
	}
	domain := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(d.address[at+1:])), ".")
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		domain = ascii
	}
	if strings.HasPrefix(domain, "[") || hostname.MatchString(domain) {
		return domain
	}
	return ""
}

// TestNoMailerDeliversElsewhere checks "Lists and addresses in metadata": no text that a program delivers outside of
// ours.example is allowed by onlyOurs, and none that one delivers to rival.example passes anyRival in a rule that denies.
func TestNoMailerDeliversElsewhere(t *testing.T) {
	n := *addressTexts
	if testing.Short() {
		n = min(n, 2_000)
	}
	t.Logf("go test ./internal/oracles -run %s -args -seed %d -addresses %d", t.Name(), *seed, n)
	programs, ours, rivals := newMailers(t), newRecipients(t, onlyOurs, "allow"), newRecipients(t, anyRival, "deny")
	m := mailMutator{rand.New(rand.NewPCG(*seed, 29))}
	counts := map[string]int{}
	wrong := map[string]int{}
	report := func(class, text string, d delivery) {
		if wrong[class]++; wrong[class] <= examples {
			t.Errorf("%q %s, but %s delivers to %s", text, class, d.by, d.address)
		}
	}
	for made := 0; made < n; {
		texts := append([]string(nil), hostile[:min(len(hostile), n-made)]...)
		if made > 0 {
			texts = nil
		}
		for len(texts) < min(n-made, 5_000) {
			if s := m.text(); len(s) <= condition.MaxText {
				texts = append(texts, s)
			}
		}
		made += len(texts)
		for i, found := range programs.deliver(t, texts) {
			allowed, passes := ours.allows(texts[i]), rivals.allows(texts[i])
			elsewhere, rival := false, false
			for _, d := range found {
				domain := d.domain()
				if domain != "" && domain != "ours.example" {
					if elsewhere = true; allowed {
						report("is within *@ours.example", texts[i], d)
						break
					}
				}
				if domain == "rival.example" {
					if rival = true; passes {
						report("passes a denied *@rival.example", texts[i], d)
						break
					}
				}
			}
			for class, is := range map[string]bool{"elsewhere": elsewhere, "to the rival": rival, "allowed": allowed, "allowed and delivered": allowed && len(found) > 0} {
				if is {
					counts[class]++
				}
			}
		}
	}
	t.Logf("of %d texts: %v; wrong %v", n, counts, wrong)
	for _, class := range []string{"elsewhere", "to the rival", "allowed and delivered"} {
		if counts[class] < n/50 {
			t.Errorf("%d of %d texts are %s, want at least 2 %%", counts[class], n, class)
		}
	}
}

// TestOrdinaryRecipientsStayAllowed checks that ordinary addresses with display names are allowed, and that they are ours
// for every program that delivers them.
func TestOrdinaryRecipientsStayAllowed(t *testing.T) {
	ours, rivals := newRecipients(t, onlyOurs, "allow"), newRecipients(t, anyRival, "deny")
	for _, to := range []string{
		"ana@ours.example", " ana@ours.example ", "Ana <ana@ours.example>", "Ana B. Doe <ana@ours.example>", `"Doe, Ana" <ana@ours.example>`, `"Ana \"Annie\" Doe" <ana@ours.example>`,
		"ana@ours.example (Ana Doe)", "Ana (work) <ana@ours.example>", "<ana@ours.example>", "ana+tag@ours.example", "ana.doe@ours.example", "o'brien@ours.example",
		"ana@OURS.example", "ana@ours.example.", "=?utf-8?q?=C3=84nne?= <ana@ours.example>", "Änne Müller <ana@ours.example>", "änne@ours.example", "ana_doe-x@ours.example", "Ana O'Brien <ana@ours.example>",
		"ana@ours.example, bob@ours.example", "ana@ours.example; bob@ours.example;", "Ana <ana@ours.example>,\r\n Bob <bob@ours.example>", `["ana@ours.example"]`, `["Ana <ana@ours.example>","\"Doe, Bob\" <bob@ours.example>"]`,
		"mailto:ana@ours.example", "mailto:ana@ours.example?subject=Hello%20there", "mailto:ana@ours.example?cc=bob@ours.example", "田中 <tanaka@ours.example>", "Ana | Ours GmbH <ana@ours.example>", "Ana - R&D <ana@ours.example>",
	} {
		if !ours.allows(to) {
			t.Errorf("%q is not within *@ours.example", to)
		}
		if !rivals.allows(to) {
			t.Errorf("%q is taken for a rival's", to)
		}
	}
}

// hostile has texts that were allowed once, or that some program is known to read in its own way.
var hostile = []string{
	"evil@evil.example;a@ours.example", "<evil@evil.example>@ours.example", `"eve@evil.example x"@ours.example`, "eve@rival.example;ana@ours.example",
	"Eve <eve@rival.example>", "eve@RIVAL.example", "eve@rival.example.", "=?utf-8?q?eve=40evil.example=3E=00?=@ours.example", "=?utf-8?q?eve=40evil.example?= <ana@ours.example>",
	`"eve@evil.example"@ours.example`, "eve@evil.example@ours.example", "<@ours.example:eve@evil.example>", "friends: eve@evil.example;", "ana@ours.example(eve@evil.example)",
	"eve@evil.example\x00@ours.example", "eve@evil.example\u3000@ours.example", "ana@ours.example\u2028eve@evil.example", `["eve\u0040evil.example", "ana@ours.example"]`, `["x@ours.example","x@evil.example\u002eours.example"]`,
	"eve@evil。example", "ana@ours.example <eve@evil.example>", "eve@evil.example <ana@ours.example>", `"ana@ours.example" <eve@evil.example>`, "eve@[192.0.2.1]", "ana@ours.example\r\nBcc: eve@evil.example",
	"xn--eve@evil.example", "eve@evil.example%00@ours.example", `eve\@evil.example@ours.example`, "'eve@rival.example'", "eve@rival.example'", "(eve@evil.example)ana@ours.example", "ana@(x)evil.example",
	"eve@ri\rval.example", "Ana <eve@rival.(x\rexample>", "=?,tf-8?b?ZXZlQHJpdmFsLmV4YW1wbGU=?= eve@ours.example", `=?utf-8?b?ZXZlQHJ;pdmFsLmV4YW1wbGU=?="a b"@riva"l"example`,
	"Ana <\"ev(@\tevil.example\"@rival.(x)example>\teve@OURS.example (wo)rk)", `"Doe, Ana" <o'x@ours.example>"ev@evi\l.example"@ours.example ("eve\@(x)rival.example)`,
	"o'x@RIVAL.Example..", "a@b:x+y@evil.example.ours.examplebob@rival.(x)example＠ x+y@ours.example", "(x]+y@(x)rival.example)\"a b\"@rival。exampl\u3000e\tbob@ours.example\n(ana@ours.example)eve@ours.example",
}

// mailMutator makes texts with addresses.
type mailMutator struct{ *rand.Rand }

func (m mailMutator) of(all ...string) string { return all[m.IntN(len(all))] }

func (m mailMutator) address() string {
	local := m.of("ana", "eve", "a.b", "o'x", `"eve"`, `"a b"`, "", "x+y", "=?utf-8?q?eve?=", "eve%evil.example", `"eve@evil.example"`, "ana", "eve", "bob")
	domain := m.of("ours.example", "ours.example", "ours.example", "ours.example", "evil.example", "rival.example", "rival.example", "OURS.example", "RIVAL.Example.", "[192.0.2.1]", "evil.example.ours.example", "ours.example.evil.example",
		"rival。example", "ｒｉｖａｌ.example", "xn--rival-.example", "(x)rival.example", "rival.(x)example")
	return local + "@" + domain
}

func (m mailMutator) mailbox() string {
	a := m.address()
	switch m.IntN(14) {
	case 0:
		return "Ana <" + a + ">"
	case 1:
		return `"Doe, Ana" <` + a + ">"
	case 2:
		return `"` + m.address() + `" <` + a + ">"
	case 3:
		return m.address() + " <" + a + ">"
	case 4:
		return a + " (" + m.of("work", m.address()) + ")"
	case 5:
		return "(" + m.address() + ")" + a
	case 6:
		return m.of("friends", "a@b", "") + ":" + a + m.of(";", ",", "") + m.of("", m.address())
	case 7:
		return "<" + m.of("@ours.example:", "@rival.example,@ours.example:", "") + a + ">"
	case 8:
		return `"` + m.of("", m.address()) + m.of(" ", ",", ";", `\"`, "") + m.of("x", m.address()) + `"@` + m.of("ours.example", "evil.example")
	case 9:
		return "<" + m.address() + ">" + m.of("", "@ours.example", a, " "+a)
	case 10:
		return m.of("=?utf-8?q?", "=?utf-8?b?") + m.of("eve=40rival.example", "ZXZlQHJpdmFsLmV4YW1wbGU=", "x") + "?=" + m.of(" ", "") + m.of("<"+a+">", a)
	}
	return a
}

func (m mailMutator) text() string {
	if m.IntN(12) == 0 {
		list := []string{m.mailbox()}
		for range m.IntN(3) {
			list = append(list, m.mailbox())
		}
		b, _ := json.Marshal(list)
		return m.marred(string(b))
	}
	text := m.mailbox()
	for range m.IntN(3) {
		text += m.of(",", ", ", ";", "; ", "\n", "\r\n ", " ", "\t", "") + m.mailbox()
	}
	return m.marred(text)
}

// marred changes some characters of half of the texts.
func (m mailMutator) marred(text string) string {
	runes := []rune(text)
	for range max(0, m.IntN(8)-4) {
		at := m.IntN(len(runes) + 1)
		mark := []rune(m.of(`"`, "<", ">", "(", ")", ",", ";", ":", "@", `\`, "[", "]", " ", "\t", "\n", "\r", ".", "'", "\x00", "\x0b", "\u00a0", "\u2028", "\u200b", "=?", "%40", "\u3000", "＠", "\x7f", "|", "`"))
		switch {
		case m.IntN(3) > 0 || at == len(runes):
			runes = slices.Insert(runes, at, mark...)
		case m.IntN(2) == 0:
			runes = slices.Delete(runes, at, at+1)
		default:
			runes[at] = mark[0]
		}
		if len(runes) == 0 {
			break
		}
	}
	return string(runes)
}

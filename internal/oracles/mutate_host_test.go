package oracles

import (
	"strings"
)

// addressSpellings has ways to write an address that the programs understand.
var addressSpellings = map[string][]string{
	"127.0.0.1": {"0x7f.0.0.1", "0177.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1", "0x7F.1", "127.0.0.1.",
		"[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "0x7f.0x0.0x0.0x1", "00127.0.0.1",
		"127.0.0.0x1", "[::127.0.0.1]", "%31%32%37.0.0.1", "127.0.00.1"},
	"169.254.169.254": {"0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "2852039166", "0xa9fea9fe", "169.254.43518", "169.16689662", "[::ffff:169.254.169.254]",
		"[::ffff:a9fe:a9fe]", "[0:0:0:0:0:FFFF:A9FE:A9FE]", "169.254.169.254.", "169。254.169.254", "0xA9FEA9FE"},
	"[2001:db8::1]": {"[2001:DB8::1]", "[2001:db8:0:0:0:0:0:1]", "[2001:0db8::0001]", "[2001:db8::0:1]", "[2001:db8::0.0.0.1]", "[2001:db8:0::1]",
		"[2001:db8::1%25eth0]", "[2001%3adb8::1]", "[2001:db8::１]"},
	"bücher.example": {"xn--bcher-kva.example", "XN--BCHER-KVA.example", "BÜCHER.example", "bu\u0308cher.example", "b%C3%BCcher.example", "bücher。example",
		"ｂücher.example", "bücher\u00ad.example", "xn--bcher-kva.example.", "xn--BCHER-kva.EXAMPLE", "b\u00fccher.ⓔxample"},
	"straße.example": {"strasse.example", "xn--strae-oqa.example", "STRASSE.example", "STRAẞE.example", "straẞe.example", "stra\u017fse.example", "straße\u3002example",
		"STRAßE.example", "stra%C3%9Fe.example"},
}

// host writes the host in another way.
func host(m *mutator, p *parts) {
	if all := addressSpellings[p.authority]; all != nil && m.IntN(4) > 0 {
		p.authority = m.pick(all...)
		return
	}
	switch m.IntN(6) {
	case 0:
		p.authority += m.pick(".", "..", "%2e", "。", "．", "｡", ".%2e")
	case 1:
		p.authority = m.replaceOne(p.authority, ".", m.pick("。", "．", "｡", "%2e", "%2E", "..", "%E3%80%82", "\u00ad."))
	case 2:
		p.authority = m.replaceOne(p.authority, m.pick("e", "s", "k", "a", "i", "p"), m.pick("ⓔ", "ſ", "\u212a", "ª", "ⁱ", "ｐ", "\U0001d5c9", "𝐚"))
	case 3, 4:
		p.authority = m.flip(p.authority)
	default:
		p.authority = m.rewrite(p.authority)
	}
}

func port(m *mutator, p *parts) {
	if p.authority == "" {
		return
	}
	p.authority += m.pick(":443", ":80", ":0443", ":00080", ":", ":5432", ":05432", ":22", ":21", ":00", ":65979", ":443 ", ":4%343", ":４４３", ".:443", ":+443",
		":443:443", ",other.example", ";other.example", ",")
	if m.IntN(5) == 0 {
		p.authority = m.pick("other.example,", "other.example:1,", "other.example;", ",") + p.authority
	}
}

func user(m *mutator, p *parts) {
	p.authority = m.pick("user@", "user:p%40ss@", "a@b@", "evil.example@", "@", ":@", `x\@`, "x%2f@", "u;p@", "user:@", "x%5c@", "evil.example:80@", "a%3ab@",
		"[::1]@", "é@", "a b@", "x/@", "x?@", "x#@") + p.authority
}

func fileHost(m *mutator, p *parts) {
	if p.sep == "" {
		return
	}
	p.authority = m.pick("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "", "", "/", "//", ".", "%6cocalhost", "user@localhost", "localhost:80") + p.authority
}

func windowsSlash(m *mutator, p *parts) {
	if m.IntN(4) == 0 {
		p.path = strings.ReplaceAll(p.path, `\`, "/")
		return
	}
	p.path = m.replaceOne(p.path, `\`, m.pick("/", `\\`, `\.\`, `\x\..\`, `/x/../`, `\x/..\`, `\\\`, `\. \`, `.\`, ` \`, `...\`, `\x\y\..\..\`, `\ \..\`, `\..\`))
}

func windowsPrefix(m *mutator, p *parts) {
	unc := strings.HasPrefix(p.path, `\\`)
	switch {
	case unc:
		p.path = m.pick(`\\?\UNC\`, `\\.\UNC\`, `\\?\unc\`, "//", `\/`, `//?/UNC/`, `\\\`) + p.path[2:]
	default:
		p.path = m.pick(`\\?\`, `\\.\`, `\??\`, `//?/`, `\\?\\`, `/`, `\\./`, "//./", `file:///`) + p.path
	}
}

func windowsEnd(m *mutator, p *parts) {
	p.path += m.pick(".", " ", "...", ". .", ":stream", "::$DATA", `\`, "/", `\.`, `\x\..`, ":$I30:$INDEX_ALLOCATION", " .", "\u00a0", "::$data")
}

// list puts the address into a list of addresses.
func list(m *mutator, p *parts) {
	s := p.path
	scheme, rest := "", s
	if i := strings.IndexByte(s, ':'); i >= 0 {
		scheme, rest = s[:i+1], s[i+1:]
	}
	other := m.pick("bob@customers.example", "+15550000", "", `"x, y" <bob@customers.example>`, "Bob <bob@customers.example>", "bob%40customers.example")
	comma := m.pick(",", ";", "%2C", "%2c", "%3B", ", ", " , ", "%20,%20", ",,", ";;", "%0d%0a,", " ", "%20")
	switch m.IntN(4) {
	case 0:
		p.path = scheme + rest + comma + other
	case 1:
		p.path = scheme + other + comma + rest
	case 2:
		p.path = scheme + other + m.pick("?cc=", "?to=", "?bcc=", "?CC=", "?subject=x&cc=", "?body=a%26b&bcc=", "?c%63=", "?cc=x@y.example&To=", "?subject=1;cc=", "?&to=", "?cc=x&cc=") + rest
	default:
		p.path = scheme + m.pick("x:", "group:", "undisclosed:") + rest + ";" + other
	}
}

// dress surrounds the address with text that mail programs drop.
func dress(m *mutator, p *parts) {
	i := strings.IndexByte(p.path, ':') + 1
	before, after, _ := strings.Cut(m.pick("<A>", "Boss <A>", `"Boss, the" <A>`, "(c)A", "A(c)", " A", "A ", "%3CA%3E", `"A"`, "Boss%20%3CA%3E", "<<A>>", "A.", `"<bob@customers.example>" <A>`,
		"bob@customers.example <A>", "[A]", "<A", "A>"), "A")
	p.path = p.path[:i] + before + p.path[i:] + after
}

func mailScheme(m *mutator, p *parts) {
	i := strings.IndexByte(p.path, ':') + 1
	if strings.HasPrefix(p.path, "sms:") || strings.HasPrefix(p.path, "tel:") {
		p.path = m.pick("SMS:", "Tel:", "sms://", "tel://", "sms:%20", "tel: ") + p.path[i:]
		return
	}
	p.path = m.pick("mailto:", "MAILTO:", "mailto://", "Mailto:", "", "mailto:%20", "mailto: ", "smtp:") + p.path[i:]
}

func mailEnd(m *mutator, p *parts) {
	p.path += m.pick("?", "?subject=x", "#x", ".", "%2e", "?cc=", ",", ";", "%20", ";ext=1", ";phone-context=+1", "/", "?body=hi", "。", "\u3002")
}

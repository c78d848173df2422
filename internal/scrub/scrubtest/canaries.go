// Package scrubtest has made-up secrets for tests, in the formats of real ones. They are put
// together when a test runs, so that scanners of source code do not find them.
package scrubtest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Canary is a made-up secret.
type Canary struct {
	Name  string
	Value string
	// Secret is the part of Value that must be hidden, or empty if all of it must be.
	Secret string
	// Lines says that Value has several lines, which most fields refuse.
	Lines bool
	// Somebody says that Value identifies somebody. Documents may contain such a value.
	Somebody bool
}

// Canaries returns one secret of each kind. Each seed gives others. The formats of providers
// come first, then keys, tokens, card numbers, addresses and connection strings.
func Canaries(seed uint64) []Canary {
	m := maker{rand.New(rand.NewPCG(seed, 20))}
	return append(m.providers(), m.others()...)
}

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digit = "0123456789"
	hex   = digit + "abcdef"
	alnum = lower + upper + digit
)

type maker struct{ *rand.Rand }

func (m maker) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.IntN(len(alphabet))]
	}
	return string(b)
}

func (m maker) providers() []Canary {
	c := func(name string, parts ...string) Canary { return Canary{Name: name, Value: strings.Join(parts, "")} }
	return []Canary{
		c("aws access key", "AK", "IA", m.of(upper+"234567", 16)),
		c("github personal token", "gh", "p_", m.of(alnum, 36)),
		c("github fine-grained token", "github", "_pat_", m.of(alnum, 82)),
		c("github app token", "gh", "s_", m.of(alnum, 36)),
		c("gitlab token", "gl", "pat-", m.of(alnum, 20)),
		c("slack bot token", "xo", "xb-", m.of(digit, 12), "-", m.of(digit, 12), "-", m.of(alnum, 24)),
		c("stripe secret key", "sk", "_live_", m.of(alnum, 24)),
		c("stripe restricted key", "rk", "_test_", m.of(alnum, 24)),
		c("google api key", "AI", "za", m.of(alnum, 35)),
		c("openai key", "sk-", m.of(alnum, 20), "T3Blbk", "FJ", m.of(alnum, 20)),
		c("anthropic key", "sk-", "ant-api03-", m.of(alnum+"_-", 92), "x", "AA"),
		c("sendgrid key", "S", "G.", m.of(alnum, 22), ".", m.of(alnum, 43)),
		c("twilio key", "S", "K", m.of(hex, 32)),
		c("npm token", "np", "m_", m.of(alnum, 36)),
		c("pypi token", "pypi-", "AgEIcHlwaS5vcmc", m.of(alnum, 70)),
		c("digitalocean token", "dop", "_v1_", m.of(hex, 64)),
		c("shopify token", "shp", "at_", m.of(hex, 32)),
		c("databricks token", "dap", "i", m.of(hex, 32)),
		c("hugging face token", "h", "f_", m.of(lower+upper, 34)),
		c("doppler token", "dp.", "pt.", m.of(lower+digit, 43)),
		c("linear key", "lin", "_api_", m.of(alnum, 40)),
		c("vault token", "hv", "s.", m.of(alnum, 95)),
		c("grafana token", "gl", "sa_", m.of(alnum, 32), "_", m.of(hex, 8)),
		c("postman key", "PM", "AK-", m.of(hex, 24), "-", m.of(hex, 34)),
		c("rubygems key", "ruby", "gems_", m.of(hex, 48)),
		c("age key", "AGE-SECRET-", "KEY-1", m.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
		c("writ key", "wr", "it_", m.of(alnum, 22), "_", m.of(alnum, 49)),
	}
}

func (m maker) others() []Canary {
	segment := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	jwt := segment(`{"alg":"HS256","typ":"JWT"}`) + "." + segment(fmt.Sprintf(`{"sub":"%d","org_id":"nobody"}`, m.Uint64())) +
		"." + m.of(alnum, 43)
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "PRIVATE" + " KEY-----\n" + m.of(alnum, 64) + "\n" + m.of(alnum, 64) + "\n-----END " + kind + "PRIVATE KEY-----"
	}
	password, hook, bot, sas := m.of(alnum, 11), m.of(alnum, 68), m.of(digit, 10)+":AA"+m.of(alnum, 33), m.of(alnum, 43)
	return []Canary{
		{Name: "jwt", Value: jwt},
		{Name: "rsa private key", Value: pem("RSA "), Lines: true},
		{Name: "pkcs8 private key", Value: pem(""), Lines: true},
		{Name: "openssh private key", Value: pem("OPENSSH "), Lines: true},
		{Name: "visa", Value: m.card("4", 16, ""), Somebody: true},
		{Name: "mastercard in groups", Value: m.card("53", 16, " "), Somebody: true},
		{Name: "american express", Value: m.card("37", 15, "-"), Somebody: true},
		{Name: "e-mail", Value: m.of(lower, 9) + "." + m.of(lower, 5) + "@" + m.of(lower, 8) + ".example", Somebody: true},
		{Name: "postgres url", Value: "postgres://app:" + password + "@db.internal:5432/main", Secret: password},
		{Name: "connection string", Value: "Server=db;User=sa;Password=" + password + ";", Secret: password},
		{Name: "oracle", Value: "jdbc:oracle:thin:scott/" + password + "@db:1521", Secret: password},
		{Name: "chat webhook", Value: "https://discord.com/api/webhooks/" + m.of(digit, 18) + "/" + hook, Secret: hook},
		{Name: "bot token", Value: "https://api.telegram.org/bot" + bot + "/sendMessage", Secret: bot},
		{Name: "signed link", Value: "https://acme.blob.core.windows.net/c/b?sr=b&sig=" + sas, Secret: sas},
		{Name: "userinfo without a scheme", Value: "scott:" + password + "@db/x", Secret: password},
	}
}

// card returns a card number that begins with prefix, with a right check digit.
func (m maker) card(prefix string, n int, joint string) string {
	digits := prefix + m.of(digit, n-1-len(prefix))
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	digits += string(rune('0' + (10-sum%10)%10))
	var groups []string
	for len(digits) > 4 && joint != "" {
		groups, digits = append(groups, digits[:4]), digits[4:]
	}
	return strings.Join(append(groups, digits), joint)
}

// Hidden returns the part of the canary that must be hidden.
func (c Canary) Hidden() string {
	if c.Secret != "" {
		return c.Secret
	}
	return c.Value
}

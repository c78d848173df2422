package scrub

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// urlExamples are URLs with credentials, each with its scrubbed form. A test replaces the
// braces: {w24} by 24 letters and digits, x by hexadecimal digits, d by decimal digits, m by
// letters of Mattermost's ids, u by a UUID.
var urlExamples = [][2]string{
	{"https://hooks.slack.com/services/T{w9}/B{w9}/{w24}", "*"},
	{"https://hooks.slack-gov.com/services/T{w9}/B{w9}/{w24}", "https://hooks.slack-gov.com/services/*/*/!"},
	{"https://hooks.slack.com/workflows/T{w9}/A{w9}/{d18}/{w24}", "*"},
	{"https://hooks.slack-gov.com/triggers/T{w9}/{d13}/{x32}", "https://hooks.slack-gov.com/triggers/*/*/!"},
	{"https://discord.com/api/webhooks/{d18}/{w68}", "https://discord.com/api/webhooks/*/!"},
	{"https://ptb.discordapp.com/api/v10/webhooks/{d18}/{w68}/slack", "https://ptb.discordapp.com/api/v10/webhooks/*/!/slack"},
	{"https://discord.com/api/v10/interactions/{d18}/{w80}/callback", "https://discord.com/api/v10/interactions/*/!/callback"},
	{"https://media.guilded.gg/webhooks/{u}/{w86}", "https://media.guilded.gg/webhooks/*/!"},
	{"https://api.fluxer.app/v1/webhooks/{d18}/{w32}", "https://api.fluxer.app/v1/webhooks/*/!"},
	{"https://api.telegram.org/bot{d10}:AA{w33}/sendMessage", "https://api.telegram.org/bot!/sendMessage"},
	{"https://api.telegram.org/file/bot{d9}:{w12}/photos/1.jpg", "https://api.telegram.org/file/bot!/photos/1.jpg"},
	{"https://bots.example/bot{d10}:AA{w33}/getMe", "https://bots.example/bot!/getMe"},
	{"https://acme.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{x32}/{u}", "https://acme.webhook.office.com/webhookb2/!"},
	{"https://outlook.office.com/webhook/{u}@{u}/IncomingWebhook/{x32}/{u}", "https://outlook.office.com/webhook/!"},
	{"https://open.larksuite.com/open-apis/bot/v2/hook/{u}", "https://open.larksuite.com/open-apis/bot/v2/hook/!"},
	{"https://open.feishu.cn/open-apis/bot/hook/{x32}", "https://open.feishu.cn/open-apis/bot/hook/!"},
	{"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={u}", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=!"},
	{"https://chat.acme.example:8065/hooks/{m26}", "https://chat.acme.example:8065/hooks/!"},
	{"https://rocket.acme.example/hooks/{w17}/{w64}", "https://rocket.acme.example/hooks/*/!"},
	{"https://webexapis.com/v1/webhooks/incoming/{w80}", "https://webexapis.com/v1/webhooks/incoming/!"},
	{"https://api.ciscospark.com/v1/webhooks/incoming/{w80}", "https://api.ciscospark.com/v1/webhooks/incoming/!"},
	{"https://api.flock.com/hooks/sendMessage/{w24}", "https://api.flock.com/hooks/sendMessage/!"},
	{"https://acme.ryver.com/application/webhook/{w15}", "https://acme.ryver.com/application/webhook/!"},
	{"https://www.kookapp.cn/api/v3/incoming/{w20}", "https://www.kookapp.cn/api/v3/incoming/!"},
	{"https://inbots.zoom.us/incoming/hook/{w24}", "https://inbots.zoom.us/incoming/hook/!"},
	{"https://webhooks.t2bot.io/api/v1/matrix/hook/{w64}", "https://webhooks.t2bot.io/api/v1/matrix/hook/!"},
	{"https://www.stackfield.com/apiwh/{u}", "https://www.stackfield.com/apiwh/!"},
	{"https://notica.us/?{w6}", "https://notica.us/?!"},
	{"https://n.tkte.ch/h/4144/{w26}", "https://n.tkte.ch/h/4144/!"},
	{"https://api.spike.sh/v1/alerts/{x32}", "https://api.spike.sh/v1/alerts/!"},
	{"https://push.spug.dev/send/{w32}", "https://push.spug.dev/send/!"},
	{"https://qmsg.zendee.cn/send/{x32}", "https://qmsg.zendee.cn/send/!"},
	{"https://sctapi.ftqq.com/SCT{d6}T{w24}.send", "https://sctapi.ftqq.com/!.send"},
	{"https://api.day.app/{w22}/title/body", "https://api.day.app/!/title/body"},
	{"https://api.pushcut.io/{w21}/notifications/door", "https://api.pushcut.io/!/notifications/door"},
	{"https://events.eu.pagerduty.com/integration/{x32}/enqueue", "https://events.eu.pagerduty.com/integration/!/enqueue"},
	{"https://alert.victorops.com/integrations/generic/20131114/alert/{u}/team", "https://alert.victorops.com/integrations/generic/20131114/alert/!/team"},
	{"https://connect.signl4.com/webhook/{w10}", "https://connect.signl4.com/webhook/!"},
	{"https://hc-ping.com/{u}/fail", "https://hc-ping.com/!/fail"},
	{"https://cronitor.link/p/{x32}/backup", "https://cronitor.link/p/!/backup"},
	{"https://nosnch.in/{x10}", "https://nosnch.in/!"},
	{"https://heartbeat.uptimerobot.com/m{d9}-{x40}", "https://heartbeat.uptimerobot.com/!"},
	{"https://uptime.betterstack.com/api/v1/heartbeat/{w24}", "https://uptime.betterstack.com/api/v1/heartbeat/!"},
	{"https://logs-01.loggly.com/inputs/{u}/tag/http/", "https://logs-01.loggly.com/inputs/!/tag/http/"},
	{"https://endpoint1.collection.us2.sumologic.com/receiver/v1/http/{w86}==", "https://endpoint1.collection.us2.sumologic.com/receiver/v1/http/!"},
	{"https://sentry.io/api/hooks/release/builtin/{d6}/{x64}/", "https://sentry.io/api/hooks/release/builtin/*/!/"},
	{"https://hooks.zapier.com/hooks/catch/{d7}/{w7}/", "https://hooks.zapier.com/hooks/catch/*/!/"},
	{"https://maker.ifttt.com/trigger/door_opened/with/key/{w22}", "https://maker.ifttt.com/trigger/door_opened/with/key/!"},
	{"https://maker.ifttt.com/use/{w22}", "https://maker.ifttt.com/use/!"},
	{"https://hook.eu1.make.com/{w32}", "https://hook.eu1.make.com/!"},
	{"https://hook.integromat.com/{w32}", "https://hook.integromat.com/!"},
	{"https://webhooks.integrately.com/a/webhooks/{x32}", "https://webhooks.integrately.com/a/webhooks/!"},
	{"https://connect.pabbly.com/workflow/sendwebhookdata/{w64}", "https://connect.pabbly.com/workflow/sendwebhookdata/!"},
	{"https://webhooks.eu.workato.com/webhooks/rest/{u}/order", "https://webhooks.eu.workato.com/webhooks/rest/!/order"},
	{"https://acme.tines.com/webhook/{x32}/{x32}", "https://acme.tines.com/webhook/*/!"},
	{"https://acme.app.n8n.cloud/webhook/{u}", "https://acme.app.n8n.cloud/webhook/!"},
	{"https://hooks.airtable.com/workflows/v1/genericWebhook/app{w14}/wfl{w14}/wtr{w14}", "https://hooks.airtable.com/workflows/v1/genericWebhook/*/*/!"},
	{"https://hooks.nabu.casa/{w80}", "https://hooks.nabu.casa/!"},
	{"https://automation.atlassian.com/pro/hooks/{x40}", "https://automation.atlassian.com/pro/hooks/!"},
	{"https://api-private.atlassian.com/automation/webhooks/jira/a/{u}/{u}", "https://api-private.atlassian.com/automation/webhooks/jira/a/*/!"},
	{"https://webhook.site/{u}", "https://webhook.site/!"},
	{"https://webhook.site/token/{u}/requests", "https://webhook.site/token/!/requests"},
	{"https://api.netlify.com/build_hooks/{x24}", "https://api.netlify.com/build_hooks/!"},
	{"https://api.vercel.com/v1/integrations/deploy/prj_{w28}/{w10}", "https://api.vercel.com/v1/integrations/deploy/*/!"},
	{"https://api.render.com/deploy/srv-{w20}?key={w11}", "https://api.render.com/deploy/*?key=!"},
	{"https://api.cloudflare.com/client/v4/pages/webhooks/deploy_hooks/{u}", "https://api.cloudflare.com/client/v4/pages/webhooks/deploy_hooks/!"},
	{"https://hub.docker.com/api/build/v1/source/{u}/trigger/{u}/call/", "https://hub.docker.com/api/build/v1/source/*/trigger/!/call/"},
	{"https://mainnet.infura.io/v3/{x32}", "https://mainnet.infura.io/v3/!"},
	{"https://eth-mainnet.g.alchemy.com/v2/{w32}", "https://eth-mainnet.g.alchemy.com/v2/!"},
	{"https://a-b.quiknode.pro/{x40}/", "https://a-b.quiknode.pro/!/"},
	{"https://acme.blob.core.windows.net/c/b?sv=2020-08-04&sp=r&sig={w43}%3D", "https://acme.blob.core.windows.net/c/b?sv=2020-08-04&sp=r&sig=!"},
	{"https://prod-1.westeurope.logic.azure.com:443/workflows/{x32}/triggers/manual/paths/invoke?sv=1.0&sig={w43}",
		"https://prod-1.westeurope.logic.azure.com:443/workflows/*/triggers/manual/paths/invoke?sv=1.0&sig=!"},
	{"https://acme.azurewebsites.net/api/run?x=1&code={w54}==", "https://acme.azurewebsites.net/api/run?x=1&code=!"},
	// Rules of gitleaks find these, or the names of their parameters tell that they are
	// credentials.
	{"https://chat.googleapis.com/v1/spaces/{w11}/messages?key=AI{w0}za{w35}&token={w43}", "https://chat.googleapis.com/v1/spaces/*/messages?key=!&token=!"},
	{"https://hooks.chime.aws/incomingwebhooks/{u}?token={w43}", "https://hooks.chime.aws/incomingwebhooks/*?token=!"},
	{"https://oapi.dingtalk.com/robot/send?access_token={x64}", "https://oapi.dingtalk.com/robot/send?access_token=!"},
	{"https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={x64}", "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=!"},
	{"https://storage.googleapis.com/b/k?X-Goog-Signature={x64}", "https://storage.googleapis.com/b/k?X-Goog-Signature=!"},
	{"https://ann:{x34}@jenkins.example/job/x/build", "https://!/job/x/build"},
	{"https://x-access-token:{w36}@github.com/a/b", "https://!/a/b"},
}

var madeUpPart = regexp.MustCompile(`\{([wxdmu])(\d*)\}`)

// makeUp returns example with its braces replaced by random characters.
func makeUp(r *rand.Rand, example string) string {
	const digits = "0123456789"
	alphabets := map[byte]string{
		'w': "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits, 'x': digits + "abcdef", 'd': digits,
		'm': "ybndrfg8ejkmcpqxot1uwisza345h769",
	}
	of := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	return madeUpPart.ReplaceAllStringFunc(example, func(part string) string {
		if part[1] == 'u' {
			x := alphabets['x']
			return of(x, 8) + "-" + of(x, 4) + "-4" + of(x, 3) + "-8" + of(x, 3) + "-" + of(x, 12)
		}
		n := 0
		for _, c := range part[2 : len(part)-1] {
			n = n*10 + int(c-'0')
		}
		return of(alphabets[part[1]], n)
	})
}

// TestURLs_CredentialsAreFound checks that credentials in the URLs of well-known services
// (chat webhooks, bot tokens) are found in texts, resources and documents. The URLs are
// tried as they are written, in upper case, and with a port, doubled slashes and escapes.
func TestURLs_CredentialsAreFound(t *testing.T) {
	g := newTagger(t)
	r := rand.New(rand.NewPCG(8, 5))
	for _, example := range urlExamples {
		url := makeUp(r, example[0])
		want := `(?i)^` + strings.NewReplacer(`\*`, `[^/]*`, `!`, `\[redacted:[a-z-]+\]`).Replace(regexp.QuoteMeta(example[1])) + `$`
		if example[1] == "*" {
			want = `^\[redacted:[a-z-]+\]$`
		}
		if got := g.Text(url); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("Text(%q) = %q, want %s", url, got, example[1])
		}
		scheme, rest, _ := strings.Cut(url, "://")
		host, path, _ := strings.Cut(rest, "/")
		spelled := []string{url, scheme + "://" + host + "//" + path, "see " + url + ".", "HTTPS://" + strings.ToUpper(host) + "/" + path}
		if !strings.Contains(host, ":") {
			spelled = append(spelled, "https://"+host+":443/"+path, `https://`+host+`\`+strings.ReplaceAll(path, "/", `\`), "https://"+host+"/"+strings.ReplaceAll(path, "/", "%2F"))
		}
		for _, s := range spelled {
			if got := g.Text(s); got == s {
				t.Errorf("Text(%q) is unchanged", s)
			}
			if got := g.Resource(s, s); got == s {
				t.Errorf("Resource(%q) is unchanged", s)
			}
			if _, found := g.Search()("pattern", s); !found {
				t.Errorf("Search of %q found nothing", s)
			}
		}
	}
}

// TestURLs_EachFormatHasAnExample checks that each format of urlFormats matches an
// example.
func TestURLs_EachFormatHasAnExample(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 6))
	for _, f := range urlFormats {
		expression, found := regexp.MustCompile(f.expression()), false
		for _, example := range urlExamples {
			url := makeUp(r, example[0])
			found = found || expression.MatchString(url) && strings.Contains(strings.ToLower(url), f.keyword)
		}
		if !found {
			t.Errorf("no example has the format of %s%s", f.host, f.path)
		}
	}
}

// TestURLs_OtherURLsStay checks that URL patterns, documentation and other URLs of the
// same hosts are not taken for credentials.
func TestURLs_OtherURLsStay(t *testing.T) {
	g := newTagger(t)
	for _, url := range []string{
		"https://hooks.slack.com/services/**", "https://hooks.slack.com/services/T0ABCDEFG/*", "https://discord.com/api/webhooks/*/*",
		"https://discord.com/api/v10/channels/123456789012345678/messages", "https://api.telegram.org/bot*/sendMessage",
		"https://api.telegram.org/bot{token}/sendMessage", "https://discord.com/api/webhooks/1/XXXXXXXXXXXXXXXXXXXX",
		"https://api.stripe.com/v1/webhook_endpoints/we_1Mr5jULkdIwHu7ix1ibLTM0x", "https://api.github.com/repos/a/b/hooks/12345678",
		"https://api.example/v1/webhooks/123e4567-e89b-12d3-a456-426614174000", "https://api.example/hooks/01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"https://api.example/hooks/123e4567-e89b-12d3-a456-426614174000", "https://hooks.zapier.com/hooks/catch/**",
		"https://events.pagerduty.com/v2/enqueue", "https://maker.ifttt.com/trigger/*/with/key/*", "https://docs.infura.io/api/networks",
		"https://acme.blob.core.windows.net/c/b?sig=*", "https://api.cloudflare.com/client/v4/zones/0123456789abcdef0123456789abcdef",
		"https://acme.atlassian.com/rest/api/3/issue/OPS-1", "https://api.netlify.com/api/v1/sites", "https://app.make.com/123/scenarios/456",
		"https://api.twilio.com/2010-04-01/Accounts/AC0123456789abcdef0123456789abcdef/Messages.json",
		"https://acme.sharepoint.example/_layouts/webhook.office", "arn:aws:sns:eu-west-1:123456789012:webhooks", "bot:aa-deployer",
	} {
		if got := g.Text(url); got != url {
			t.Errorf("Text(%q) = %q, want it unchanged", url, got)
		}
		if kind, found := g.Search()("pattern", url); found {
			t.Errorf("Search of %q = %s, want nothing", url, kind)
		}
	}
}

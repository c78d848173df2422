package scrub

import (
	"slices"
	"strings"
)

// KindURL is the kind of a credential in the URL of a well-known service: a webhook, a bot, a
// signed link. The URL alone is enough to use it.
const KindURL = "url-credential"

// urlFormat is the format of a service's URLs with a credential.
type urlFormat struct {
	keyword string // of the host, in lower case
	host    string // expression
	path    string // expression from the slash after the host on; its group is the credential
}

// urlFormats are formats that gitleaks lacks. They were gathered from the
// services' own documentation, from the URLs that Apprise's plugins accept
// (github.com/caronc/apprise) and from TruffleHog's detectors. Look there first for
// further ones. An account or a channel before the credential is not replaced.
var urlFormats = []urlFormat{
	// Chats.
	{"hooks.slack", `hooks\.slack(?:-gov)?\.com`, `/services/\w+/\w+/(\w{8,})`},
	{"hooks.slack", `hooks\.slack(?:-gov)?\.com`, `/(?:workflows|triggers)/(?:\w+/){1,3}(\w{16,})`},
	{"discord", `discord(?:app)?\.com`, `/api/(?:v\d+/)?(?:webhooks|interactions)/\d+/([\w-]{16,})`},
	{"guilded.gg", `guilded\.gg`, `/webhooks/[\w-]+/([\w-]{16,})`},
	{"fluxer.app", `fluxer\.app`, `/(?:v\d+/)?webhooks/\d+/([\w-]{8,})`},
	{"telegram.org", `telegram\.org`, `/(?:file/)?bot(\d+:[\w-]{8,})`},
	{".office", `\.office(?:365)?\.com`, `/webhook\w*/([\w-]+@[\w-]+/IncomingWebhook/[\w-]{16,}(?:/[\w-]+){0,2})`},
	{"larksuite.", `larksuite\.\w+`, `/open-apis/bot/(?:v\d/)?hook/([\w-]{16,})`},
	{"feishu.", `feishu\.\w+`, `/open-apis/bot/(?:v\d/)?hook/([\w-]{16,})`},
	{"qyapi.weixin", `qyapi\.weixin\.qq\.com`, `/cgi-bin/webhook/send(?:/)?\?(?:[^\s#]*&)?key=([\w-]{16,})`},
	{"hooks", `\w(?:\.\w+|:\d+)`, `/hooks/((?-i:[13-9abcdefghijkmnopqrstuwxyz]{26}))\b`}, // Mattermost
	{"hooks", `\w(?:\.\w+|:\d+)`, `/hooks/\w{17,24}/([A-Za-z0-9]{43,64})\b`},             // Rocket.Chat
	{"webexapis", `webexapis\.com`, `/v\d/webhooks/incoming/([\w-]{16,})`},
	{"ciscospark", `ciscospark\.com`, `/v\d/webhooks/incoming/([\w-]{16,})`},
	{"flock.com", `api\.flock\.com`, `/hooks/sendMessage/([\w-]{16,})`},
	{"ryver.com", `ryver\.com`, `/application/webhook/(\w{8,})`},
	{"kookapp.cn", `kookapp\.cn`, `/api/v\d/incoming/([\w=+-]{8,})`},
	{"inbots.zoom", `inbots\.zoom\.us`, `/incoming/hook/([\w-]{16,})`},
	{"t2bot.io", `webhooks\.t2bot\.io`, `/api/v\d+/matrix/hook/([\w-]{16,})`},
	{"stackfield", `stackfield\.com`, `/apiwh/([\w-]{16,})`},
	// Notifications and alerts.
	{"notica.us", `notica\.us`, `(?:/)?\?(\w{4,})`},
	{"n.tkte.ch", `n\.tkte\.ch`, `/h/\d+/(\w{8,})`},
	{"api.spike.sh", `api\.spike\.sh`, `/v\d/alerts/(\w{32})`},
	{"push.spug", `push\.spug\.\w+`, `/send/([\w-]{8,})`},
	{"qmsg.zendee", `qmsg\.zendee\.cn`, `/send/(\w{16,})`},
	{"sctapi.ftqq", `sctapi\.ftqq\.com`, `/(\w{16,})\.send`},
	{"api.day.app", `api\.day\.app`, `/([A-Za-z0-9]{20,24})\b`},
	{"pushcut.io", `api\.pushcut\.io`, `/(?:v\d/)?([\w-]{16,})/`},
	{"pagerduty", `events\.(?:eu\.)?pagerduty\.com`, `/(?:integration|x-ere)/(\w{20,})`},
	{"victorops", `alert\.victorops\.com`, `/integrations/[\w-]+/\d+/alert/([\w-]{16,})`},
	{"signl4", `connect\.signl4\.com`, `/webhook/([\w-]{8,})`},
	{"hc-ping", `hc-ping\.com`, `/([\w-]{20,})`},
	{"cronitor", `cronitor\.link`, `/(?:p/)?([0-9a-f]{32})`},
	{"nosnch.in", `nosnch\.in`, `/([0-9a-f]{10})\b`},
	{"uptimerobot", `heartbeat\.uptimerobot\.com`, `/(m\d+-[0-9a-f]{16,})`},
	{"better", `uptime\.better(?:stack|uptime)\.com`, `/api/v\d/heartbeat/(\w{16,})`},
	{"loggly", `loggly\.com`, `/(?:inputs|bulk)/([\w-]{20,})`},
	{"sumologic", `sumologic\.com`, `/receiver/v\d/http/([\w=+-]{40,})`},
	{"sentry.io", `sentry\.io`, `/api/hooks/release/builtin/\d+/([0-9a-f]{32,})`},
	// Automation and builds.
	{"hooks.zapier", `hooks\.zapier\.com`, `/hooks/(?:standard|catch)/\d+/(\w{5,})`},
	{"maker.ifttt", `maker\.ifttt\.com`, `/(?:trigger/[\w-]+/(?:json/)?with/key|use)/([\w-]{10,})`},
	{".make.com", `hook\.(?:\w+\.)?make\.com`, `/(\w{20,})`},
	{"integromat", `hook\.integromat\.com`, `/(\w{20,})`},
	{"integrately", `webhooks\.integrately\.com`, `/a/webhooks/(\w{20,})`},
	{"pabbly", `connect\.pabbly\.com`, `/workflow/sendwebhookdata/(\w{20,})`},
	{"workato", `webhooks\.(?:\w+\.)?workato\.com`, `/webhooks/rest/([\w-]{20,})`},
	{"tines.com", `tines\.com`, `/webhook/\w{32}/(\w{32})`},
	{"n8n.cloud", `n8n\.cloud`, `/webhook(?:-test)?/([\w-]{16,})`},
	{"hooks.airtable", `hooks\.airtable\.com`, `/workflows/v\d/genericWebhook/app\w+/wfl\w+/(\w{10,})`},
	{"hooks.nabu", `hooks\.nabu\.casa`, `/([\w=-]{20,})`},
	{"atlassian", `atlassian\.com`, `/pro/hooks/(\w{20,})`},
	{"atlassian", `atlassian\.com`, `/automation/webhooks/\w+/a/[\w-]+/([\w-]{20,})`},
	{"webhook.site", `webhook\.site`, `/(?:#!/)?(?:view/|token/)?([0-9a-f-]{36})`},
	{"api.netlify", `api\.netlify\.com`, `/build_hooks/(\w{20,})`},
	{"api.vercel", `api\.vercel\.com`, `/v\d/integrations/deploy/\w+/(\w{8,})`},
	{"api.render", `api\.render\.com`, `/deploy/[\w-]+\?key=([\w-]{8,})`},
	{"cloudflare", `api\.cloudflare\.com`, `/client/v\d/pages/webhooks/deploy_hooks/([\w-]{20,})`},
	{"hub.docker", `hub\.docker\.com`, `/api/build/v\d/source/[\w-]+/trigger/([\w-]{20,})`},
	// Nodes of block chains.
	{"infura.io", `infura\.io`, `/(?:ws/)?v\d/([0-9a-f]{32})`},
	{"alchemy", `alchemy(?:api)?\.(?:com|io)`, `/(?:nft/)?v\d/([\w-]{32})`},
	{"quiknode", `quiknode\.pro`, `/([0-9a-f]{32,})`},
	// Signed links of Azure: storage, Logic Apps, Power Automate, Functions.
	{"sig=", `[?&;]sig`, `=([^\s&"'*]{20,})`},
	{"azurewebsites", `azurewebsites\.net`, `/api/[^\s?#]+\?(?:[^\s#]*&)?code=([^\s&"'*]{20,})`},
}

// formatsPerRule is how many formats share a rule. A ruleSet has room for few more rules
// than gitleaks has, and an expression with more formats is slower.
const formatsPerRule = 6

func urlRules() (rules []*rule) {
	for formats := range slices.Chunk(urlFormats, formatsPerRule) {
		var expressions, keywords []string
		for _, f := range formats {
			expressions, keywords = append(expressions, f.expression()), append(keywords, f.keyword)
		}
		r := mustRule(KindURL, strings.Join(expressions, "|"), keywords...)
		r.harmless = func(text string, start, end int) bool { return placeholder.MatchString(text[start:end]) }
		rules = append(rules, r)
	}
	return rules
}

// expression returns what matches a URL of the format. A host may have a port,
// and clients read doubled slashes and backslashes as one slash.
func (f urlFormat) expression() string {
	return `(?i:` + f.host + `(?::\d+)?` + strings.ReplaceAll(f.path, "/", `[/\\]+`) + `)`
}

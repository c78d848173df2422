package scrub

import (
	"strings"
	"testing"
)

const (
	digest1   = "8ade135a41bc03ea155e62e844d188df1ea18608"
	digest256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// everyday has texts of policies, rules, agents and resources that look a little like a secret.
var everyday = map[string][]string{
	"places in lists and numbers of words": {
		"https://api.example/v1/list?max_token=4096", "https://api.example/v1/list?max_tokens=4096&page_token=CAUQAA",
		"https://api.example/v1/list?pageToken=EAAaHlBUOkNBVWlFRGt5TVRrek5qazVNVFU", "?next_token=abc1234567890defghij", "?nextPageToken=*",
		"?NextToken=AbCdEf0123456789xyz", "?continuation-token=1!48!abc", "?$skiptoken=X%274453707402000100", "?syncToken=CPDAlvWDx70CEPDAlvWDx70CGAU",
		"max_new_tokens=256", "--max-tokens 4096", "--page-token CAUQAA0123", `{"page_token": "CAUQAA0123456789abcd"}`, "total_tokens: 48211",
		`intent.metadata.page_token == "CAUQAA0123456789abcd"`, "eos_token='</s>'", "completion_token=12",
	},
	"values that say that there is none": {
		"https://x.example/login?use_token=true", "?secret=false", "password=null", "token=none", "token=xxxx", "token=REDACTED", "api_key=...",
	},
	"accounts of services": {
		"git@github.com:org/repo", "git@github.com:org/repo.git@main", "'git@github.com:org/repo'", "ssh://git@host.example/org/repo",
		"git+ssh://git@gitlab.example.com:7999/a/b.git", "hg@bitbucket.org", "ssh://hg@bitbucket.org/a/b", "svn@svn.example.com",
		"svn+ssh://svn@svn.example.com/r", "repo:git@github.com", "source=git@github.com:a/b", `intent.resource == 'git@github.com:org/repo'`,
		`{"resource":"git@github.com:org/**"}`, "noreply@example.com", "ssh://ec2-user@web1.example.com/", "postgres://app@db.example.com:5432/main",
		"ci@acme.iam.gserviceaccount.com", "123-compute@developer.gserviceaccount.com", "system:serviceaccount:default:deployer",
	},
	"packages and images": {
		"npm:left-pad@1.3.0", "npm:left-pad@~1.2", "npm:left-pad@>=1.2", "npm:left-pad@next", "npm:left-pad@*", "@scope/pkg", "npm:@scope/pkg@^1.2.3",
		"pkg:npm/%40scope/pkg@1.0.0-beta.rc", "app@1.0.0-rc.alpha", "org.hibernate:hibernate@5.4.1.Final", "gem:rails@7.1.3.2", "maven:org.slf4j:slf4j-api:2.0.1@jar",
		"pypi:requests@2.31.0", "golang.org/x/mod@v0.0.0-20230601120000-abcdef123456", "actions/checkout@" + digest1, "actions/checkout@v4",
		"pkg:deb/debian/curl@7.50.3-1?arch=i386", "docker.io/library/alpine@sha256:" + digest256, "alpine:3.19@sha256:" + digest256,
		"registry.example:5000/team/app:1.2@sha512:" + digest256 + digest256, "registry:5000/app@sha256:*", "oci://ghcr.io/acme/chart:1.2",
		"github:acme/app@refs/heads/main", "repo:acme/app@feature/x", "app:web@latest",
	},
	"digests and ids": {
		digest1, digest256, "d41d8cd98f00b204e9800998ecf8427e", strings.ToUpper(digest1), "https://github.com/acme/app/commit/" + digest1,
		"https://sourcegraph.com/github.com/acme/app@" + digest1, "blobs/sha256/" + digest256, "123e4567-e89b-12d3-a456-426614174000",
		"urn:uuid:123e4567-e89b-12d3-a456-426614174000", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "V1StGXR8_Z5jdHi6B-myT", "0ujtsYcgvSTl8PAuAdqWYSMnLOv",
		"eyJpZCI6NDcxMSwiYWZ0ZXIiOiIyMDI2LTExLTIxIn0=", "gid:Z2lkOi8vc2hvcGlmeS9Qcm9kdWN0LzQ3MTE=", "MDQ6VXNlcjU4MzIzMQ==",
		"https://app.asana.com/0/1203456789012345/1203456789012346", "https://discord.com/api/channels/123456789012345678",
		"cus_NffrFeUfNV2Hib", "pi_3MtwBwLkdIwHu7ix28a3tqPa", "pk_live_51H8abcDEFghiJKL",
	},
	"names in clouds": {
		"arn:aws:iam::123456789012:role/deployer", "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
		"arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/api_key-a1b2c3", "arn:aws:lambda:us-east-1:123456789012:function:token-refresher",
		"s3://bucket/year=2026/part-00000-4e1f7a5c-4b0f-4d5c-9c1d-d7f2e6a3b111.c000.snappy.parquet", "projects/1/secrets/api-key/versions/latest",
		"k8s:prod/secrets/db-password", "vault:secret/data/prod/db", "https://acme.vault.azure.net/secrets/db/0123456789abcdef0123456789abcdef",
	},
	"files and units": {
		"assets/logo@2x.png", "icons/app@3x.webp", "postgresql@main.service", "getty@tty1.service", "report@final.pdf", "backup@nightly.tar.gz", "**/*@corp.example/**",
	},
	"numbers": {
		"1795264543000000000", "1700000000000000", "20261121100000123", "order 9876543210987654", "product/4006381333023", "tel:+4915112345603",
		"score 0.4532015112830366", "39123456789012303", "3612345678901234506",
	},
	"patterns": {
		"postgres://*:*@db/main", "*.example.com:*@*", ".+@example.com", "%@example.com", "*@example.com", "AKIA*", "ghp_*", "^ghp_[0-9a-zA-Z]{36}$",
		"token={{ .Token }}", "token=${TOKEN}", "api_key:rotate", "iam:password:reset", `{"metadata.secret_name":"production"}`,
	},
}

func TestHarmless(t *testing.T) {
	s := newTagger(t)
	for name, texts := range everyday {
		for _, text := range texts {
			if got := s.Text(text); got != text {
				t.Errorf("%s: Text(%q) = %q, want it unchanged", name, text, got)
			}
			if got := s.Resource(text, text); got != text {
				t.Errorf("%s: Resource(%q) = %q, want it unchanged", name, text, got)
			}
			for _, key := range []string{"blocked_resource_patterns", "condition", "externalId", "name"} {
				if kind, found := s.Search()(key, text); found {
					t.Errorf("%s: Search of %s %q = %s, want nothing", name, key, text, kind)
				}
			}
		}
	}
}

// TestHarmless_HidesNothing checks that secrets are found even if they look a little like
// harmless texts.
func TestHarmless_HidesNothing(t *testing.T) {
	s := newScrubber(t)
	token := "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"
	for _, text := range []string{
		"?access_token=abc", "?token=abc", "?api_key=abc", "?refresh_token=abc", "?csrf_token=abc", "?page_token=" + token, "?max_token=" + token,
		"?page_token=1&token=abc", "?page=token=abc", "?next_password=abc", "token=truex", "password=xxxy",
		"alice@example.com", "ssh://alice@example.com/x", "mailto:alice@example.com", "'alice@example.com'", "users/alice@example.com.json",
		"bob.git@example.com", "gitter@example.com", "root@example.com", "alice@users.noreply.github.com", "postgres://alice@db.example.com/x",
		"https://npm:hunter2@registry.example/x", "git:hunter2@github.com", "scott:tiger@10.1.2.3", "scott:tiger@db", "scott:tiger@beta", "github:hunter2@github.com",
		"u:p*ss@h", "git@github.com:org/repo and u:pw@h", "sourcegraph " + digest1, "sgp_" + digest1,
		"4111 1111 1111 1111", "4111111111111111", "no.4111111111111111", "0.4111 1111 1111 1111", "+4111111111111111", "4222222222222",
		"371449635398431", "30569309025904", "6011111111111117", "3530111333300000",
	} {
		if _, found := s.Find(text); !found {
			t.Errorf("Find(%q) found nothing", text)
		}
	}
	values := s.Values(map[string]string{"page_token": "CAUQAA", "nextPageToken": token, "token": "x"})
	if values["page_token"] != "CAUQAA" || values["nextPageToken"] != redacted("github-pat", "") || values["token"] != redacted(KindNamed, "") {
		t.Errorf("Values = %q, want the place in a list alone", values)
	}
}

package scrub

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// placeholder matches values in the place of a credential, such as xxxx and null.
var placeholder = regexp.MustCompile(`^(?i:true|false|null|none|nil|undefined|redacted|x{3,}|\.{3,}|%s)$`)

// isOrdinaryValue reports whether the value text[start:end] is not a credential, although
// its name ends like the name of a credential. Examples are page_token=CAUQAA and
// max_token=4096.
func isOrdinaryValue(text string, start, end int) bool {
	if placeholder.MatchString(text[start:end]) {
		return true
	}
	before := strings.TrimRight(text[:start], "=:>|?,+ \t\r\n\"'`\\")
	name := strings.LastIndexFunc(before, func(r rune) bool { return !isDashed(r) && r != '.' })
	return namesPageToken(wordsOf(before[name+1:]))
}

// saysOf reports whether text[start:end] is a word that a sentence says of a credential, such as
// "required" and "rotated", and not the credential. The word is not in quotes.
func saysOf(text string, start, end int) bool {
	if start > 0 && strings.IndexByte(`"'`, text[start-1]) >= 0 {
		return false
	}
	word := strings.ToLower(strings.TrimRight(text[start:end], ".,;:!?)…"))
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		return false
	}
	return slices.Contains(said, word) || strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing") ||
		strings.HasSuffix(word, "able") || strings.HasSuffix(word, "ly") || strings.HasSuffix(word, "en")
}

// said are other words that follow "the password is" in sentences about it.
var said = strings.Fields(`
	about above absent active after again against already also always another back bad before below
	best both bought bound brought built case caught common correct current cut dealt default
	different done down drawn easy elsewhere empty enough equal everywhere felt fine first for found
	free from full gone good had heard held here hidden hit hurt illegal in inside into invalid just
	kept known laid last left less let like long longer lost made meant met mine missing more much
	must near necessary needless never nice none not nowhere null obsolete okay old older on one only
	open optional other ours out outside over paid part plain public put read ready right run safe
	said same secret seen sent set short shorter shown simple sold somewhere sought spent split
	spread still strong stuck taught that the their theirs then there these this those told too torn
	trivial true under unique unknown unsafe used valid very void was weak well what where with
	without won worn wrong your yours`)

// namesPageToken reports whether these words name a page token or a number of tokens.
func namesPageToken(words []string) bool {
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	first, isToken := strings.CutSuffix(strings.TrimSuffix(last, "s"), "token")
	if first == "" && len(words) > 1 {
		first = words[len(words)-2]
	}
	return isToken && slices.Contains(places, first)
}

// places are the words that come before "token" in the names of page tokens and of
// numbers of tokens.
var places = strings.Fields(`
	page next nextpage prev previous pagination paging continuation continue cursor sync delta
	skip resume resumption start starting stop eos bos pad mask max min maximum minimum total
	num count prompt completion input output`)

// accounts are the user names of programs.
var (
	sources = []string{"git", "hg", "svn", "cvs", "bzr"}
	logins  = strings.Fields(`
	root ec2-user ubuntu debian centos fedora rocky core azureuser vagrant admin deploy ci app
	postgres readonly`)
	unread = []string{"noreply", "no-reply", "donotreply", "do-not-reply"}
)

// isNoPerson reports whether text[start:end] is the address of a service, or no address, such
// as logo@2x.png and pkg@1.0.0-beta.rc.
func isNoPerson(text string, start, end int) bool {
	user, host, _ := strings.Cut(strings.TrimLeft(text[start:end], "'%+._-"), "@")
	switch {
	case user == "", slices.Contains(sources, user), slices.Contains(unread, user):
		return true
	case strings.HasSuffix(host, ".gserviceaccount.com"), release.MatchString(host):
		return true
	case slices.Contains(logins, user) && logsIn(text[:start]):
		return true
	}
	name := files.ReplaceAllString(host, "")
	return name != host && !address.MatchString(name)
}

// logsIn reports whether before ends with the scheme of an address that begins with an account.
func logsIn(before string) bool {
	before, ok := strings.CutSuffix(before, "://")
	return ok && slices.ContainsFunc(loginSchemes, func(scheme string) bool {
		return strings.HasSuffix(before, scheme)
	})
}

var loginSchemes = strings.Fields(`ssh sftp scp rsync postgres postgresql mysql redis amqp amqps mongodb mongodb+srv`)

var (
	release = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+[-+.]`)
	// files matches the endings of names of files and of systemd units. None of these
	// endings is a top-level domain.
	files = regexp.MustCompile(`(?:\.(?:png|jpe?g|gif|webp|svg|avif|pdf|json|ya?ml|toml|xml|html|css|js|ts|csv|tsv|txt|log|gz|tgz|bz2|xz|zst|tar|` +
		`sql|parquet|avro|orc|proto|conf|cfg|ini|lock|jar|whl|rpm|deb|iso|onnx|service|socket|timer|mount|slice))+$`)
	address = regexp.MustCompile(`\.\pL{2,}$`)
)

// packages and repositories are prefixes of names that have an @ before a version or a branch.
var (
	packages     = strings.Fields(`pkg npm pypi golang go cargo gem nuget maven oci deb rpm apk brew helm composer conda hex`)
	repositories = []string{"repo", "repository", "github", "gitlab", "bitbucket", "codeberg"}
)

// isCoordinate reports whether text[start:end], which looks like user:password, is the name of
// a package or a repository, or a pattern. An @ follows it.
func isCoordinate(text string, start, end int) bool {
	user, password, _ := strings.Cut(text[start:end], ":")
	before := text[:start]
	switch {
	case !strings.ContainsFunc(password, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return strings.Contains(password, "*")
	case strings.HasSuffix(before, "//"):
		return false
	case strings.HasSuffix(before, "@"): // git@host:path@branch
		user := strings.TrimSuffix(before, "@")
		words := wordsOf(user[strings.LastIndexFunc(user, func(r rune) bool { return !unicode.IsLetter(r) })+1:])
		return len(words) > 0 && slices.Contains(sources, words[len(words)-1])
	}
	return slices.Contains(sources, strings.TrimLeft(password, `"'`)) || slices.Contains(packages, user) ||
		slices.Contains(repositories, user) && strings.Contains(password, "/")
}

// commit reports whether text[start:end] is the hash of a commit in a URL, not a
// token of the same form.
func commit(text string, start, end int) bool {
	return end-start == 40 && start > 0 && strings.IndexByte("@/", text[start-1]) >= 0
}

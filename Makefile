# Every target is explained by `make help`.
GO      ?= go
TOOL    := $(GO) tool -modfile=internal/tools/go.mod
BIN     := bin/writ
SOURCES := $(shell find . -name '*.go' -not -path "./internal/tools/*") go.mod go.sum $(shell find examples -name '*.json' -o -name '*.yaml') api/openapi.yaml $(wildcard api/web/* api/*/web/* docs/*.md docs/pictures/*)
FUZZTIME ?= 30s

# Binary and tests are built with the same flags, so that they share what is
# compiled; -trimpath here would compile every dependency twice.
FIRST = @test -d bin || { mkdir bin; echo "The first build compiles every dependency: minutes on two cores. Later ones take seconds."; }

# GOTESTSUM prints a line a package as it ends, then what was skipped and why, and the failures last.
GOTESTSUM := $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg

# WAITING are the packages that wait more than they compute: for elections, and for programs that are killed and started
# again. They go first, so that other packages compute beside them.
WAITING = ./internal/system ./storage/mongodb

# RACED are the packages whose goroutines share memory. make check tests them under the race detector.
RACED = $(shell $(GO) list ./storage/mongodb ./api/... ./decision/... ./storage/... ./bench/load 2>/dev/null | grep -v /storage/transfer)

# UNRACED are their test files that are not built under the race detector: what runs on one goroutine for long, or
# counts allocations. make race runs their tests without it.
UNRACED = $(shell grep -rl --include='*_test.go' '^//go:build !race' api decision storage bench/load)

.PHONY: help run test quick browser pictures oracles harnesses mcp sdk soak soak-steps release release-key cluster check lint race-ahead race raced unraced vuln licenses contract bench readme-table bench-guard fuzz clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(BIN) ## Decide the example intents, verify each receipt, then serve this machine on port 3820
	$(BIN) serve --demo --addr 127.0.0.1:3820

$(BIN): $(SOURCES)
	$(FIRST)
	@GO="$(GO)" internal/tools/build $(BIN)

# BESIDE=check leaves out what make check tests, for who runs both.
test: ## Run every test: 10 minutes on two cores once dependencies are compiled
	$(FIRST)
	@$(GOTESTSUM) -- -timeout 20m $(if $(filter check,$(BESIDE)),-vet=off $(filter-out $(RACED),$(shell $(GO) list $(WAITING) ./...)),$(WAITING) ./...)

oracles: ## Install the programs that internal/oracles asks: node, Python, urllib3, requests, nodemailer, Grafana's types
	.ci/oracles

harnesses: ## Install the harnesses whose hooks cmd/writ tests: Claude Code, Codex, Gemini CLI
	.ci/harnesses

mcp: ## Run writ mcp between real MCP clients and servers
	.ci/mcp

sdk: $(BIN) ## Build, install and test the clients of sdk/ that are not in Go
	.ci/sdk

soak: $(BIN) ## Have other programs read 1,000,000 spellings of blocked resources and 100,000 texts with addresses, a second evaluator decide 100,000 cases and Rego 2,000,000, 100,000 rows lose random parts, 200 stores answer as a model does, filters select from 1,000,000, 10,000,000 intents be found, 20,000 names be spelled in other ways to one process and to three replicas, replicas race and fail, members are far away and get older disks and other clocks, an index of 2,000,000 rows be dropped, the slowest conditions in Rego and CEL be searched for, servers be killed, every secret be sent in every spelling, a page of the console get 20,000 rows, Helm render the chart, restic keep a backup in an object store, the patches of internal/newcomer apply, and each benchmark run once
	@internal/tools/soak $(MAKE) soak-steps

soak-steps:
	$(GO) test ./internal/oracles -run '^TestNoSpellingOfABlockedResourceMayPass$$' -v -timeout 4h -args -spellings 1000000
	$(GO) test ./internal/oracles -run '^TestNoMailerDeliversElsewhere$$' -v -timeout 1h -args -addresses 100000
	WRIT_SOAK=1 $(GO) test ./rego -run '^(TestReference|TestDecision_Rules_NoReasonShowsASecretOfTheMetadata|TestDecision_Evaluation_CELAndRegoAgree|TestDecision_Bounds_NoConditionIsSlow|TestGuards_ChangeNoResult)$$' -v -timeout 4h
	WRIT_SOAK=1 $(GO) test ./engine/condition -run '^TestDecision_Bounds_NoConditionIsSlow$$' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./internal/newcomer -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./internal/system -run '^Test(Replicas|Replicas_(Members|DroppedIndex|TwoUsers|Verified)|Replicas_Zombie|Names_.*|Outages|Outage_LogIsSummed|Canaries|Crash.*|Decision_Audit_Queued_CrashAndStop|Decision_Rules_AStoppedProcessDecidesTheSame|Move_Killed|DecisionLog_Collector|Signer_SoftHSM|Backup_ToAnObjectStore)$$' -v -timeout 2h
	WRIT_SOAK=1 $(GO) test ./decision/budget -run '^TestKept_IsWhatTheRowsSay$$' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./decision -run '^TestSoak_ManyOrganizations$$' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./storage/ledger -run '^TestDecision_Audit_LeftOutNamesWhatIsLost$$' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./storage/mongodb -run '^Test(Slot_OfTwoAtOnce|Watch_OfATruncatedOplog|Restore_.*|GiveUp_.*|Migrate|Open_BuildsAnIndexInTheBackground|Store_RefusesAtOnceWithoutAMajority)$$' -v -timeout 30m
	WRIT_SOAK=1 $(GO) test ./storage/embedded/index -run '^TestTables_Many$$' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./storage/embedded -run '^TestContract$$/^History$$/^the_pages_of_every_filter' -v -timeout 1h
	WRIT_SOAK=1 $(GO) test ./storage/embedded -run '^TestModel$$' -timeout 1h
	@if command -v chromium >/dev/null; then set -x; WRIT_SOAK=1 WRIT=$(CURDIR)/$(BIN) $(GO) -C internal/tools/browser test -run '^TestConsole_ManyRows$$' -count=1 -v ./...; \
	else echo "SKIPPED the page that gets 20,000 rows: there is no chromium"; fi
	$(GO) -C internal/tools/helm test -count=1 -v -timeout 30m ./...
	WRIT_SOAK=1 $(GO) -C internal/tools/release test -v -timeout 2h ./...
	$(GO) test -vet=off -run '^$$' -bench . -skip '^BenchmarkFill$$' -benchtime 1x ./... -timeout 1h

# It wants a commit with a tag at which make soak passed.
release: ## Make the files of a release in bin/release: programs, packages, image, checksums, signature
	@mkdir -p bin && rm -rf bin/release
	@$(GO) -C internal/tools/release run . $(CURDIR) $(CURDIR)/bin/release

release-key: ## Make the key that signs releases: RELEASE_KEY names its file, RELEASE_PASSWORD its password
	@$(GO) -C internal/tools/release run . key $(CURDIR)

quick: ## Run what matters while you edit, in under a minute: the engine and what decides, signs and scrubs
	$(GO) test -short ./engine/... ./examples ./decision/... ./storage ./storage/receipt ./storage/ledger/... ./storage/registry ./internal/scrub ./api/billing .

browser: $(BIN) ## Test the pages in a real Chromium: load, reload, back, dark, phone; and the client for TypeScript that make sdk builds
	@if ! command -v chromium >/dev/null; then echo "SKIPPED the tests of the pages in a browser: there is no chromium"; \
	elif ! $(GO) -C internal/tools/browser mod download 2>/dev/null; then echo "SKIPPED the tests of the pages in a browser: the modules of internal/tools/browser cannot be had"; \
	else test -d bin/sdk-typescript/used || echo "SKIPPED the client for TypeScript in a browser: make sdk builds it"; \
	  axe=$(CURDIR)/internal/tools/browser/node_modules/axe-core/axe.min.js; \
	  test -e "$$axe" || npm install --silent --no-save --no-package-lock --prefix internal/tools/browser axe-core@4.14.1 >/dev/null 2>&1 || { axe=; echo "SKIPPED axe-core, which npm cannot fetch"; }; \
	  AXE=$$axe WRIT=$(CURDIR)/$(BIN) $(GO) -C internal/tools/browser test -count=1 ./...; fi

pictures: $(BIN) ## Make the pictures of docs/console.md again, in a real Chromium
	PICTURES=$(CURDIR)/docs/pictures WRIT=$(CURDIR)/$(BIN) $(GO) -C internal/tools/browser test -count=1 -run '^TestPictures$$' ./...

check: lint race vuln ## lint, race and vuln

race-ahead: ## Compile what make race needs
	@$(GO) list -race -test -export $(RACED) >/dev/null

race: raced unraced ## Run the tests of the packages whose goroutines share memory, under the race detector

raced:
	@$(GOTESTSUM) -- -race -timeout 20m -vet=off $(RACED)

unraced:
	@$(GOTESTSUM) -- -timeout 20m -vet=off -run "^($$(sed -n 's/^func \(Test[^(]*\)(.*/\1/p' $(UNRACED) | paste -sd'|'))$$" $(sort $(addprefix ./,$(dir $(UNRACED))))

lint: ## gofmt and golangci-lint, which runs vet and staticcheck
	@out=$$(gofmt -s -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt -s wants changes in:"; echo "$$out"; exit 1; }
	$(TOOL) golangci-lint run ./...

vuln: ## govulncheck, where its database can be reached
	@if curl -sfo /dev/null -m 10 https://vuln.go.dev/index/db.json; then $(TOOL) govulncheck ./...; \
	else echo "SKIPPED govulncheck: its database at vuln.go.dev cannot be reached"; fi

cluster: ## Run two replicas on a MongoDB replica set behind HAProxy, with Prometheus and Alertmanager, until interrupted
	WRIT_CLUSTER=1 $(GO) test ./internal/system -run '^TestCluster_Stays$$' -count=1 -v -timeout 0

licenses: ## Write docs/licenses.md, the licences of all that the binary links
	$(GO) tool -modfile=internal/tools/licenses/go.mod go-licenses report --ignore writ.example/writ --template internal/tools/licenses/licenses.tmpl ./cmd/writ \
	  2>/dev/null > docs/licenses.md.new || { rm -f docs/licenses.md.new; echo "go-licenses failed: run it without 2>/dev/null to see why"; exit 1; }
	mv docs/licenses.md.new docs/licenses.md

contract: $(BIN) ## Test the binary against api/openapi.yaml with generated requests, valid and broken
	.ci/contract

bench: $(BIN) ## Run the benchmarks beside the floors of the same machine; see bench/README.md
	bench/run.sh

readme-table: ## Write the figures of README.md from bench/results/http-evaluate.txt and go.txt
	$(GO) test -vet=off ./bench -run '^TestReadme_FiguresComeFromResults$$' -count 1 -update

bench-guard: $(BIN) ## Compare what an intent, a cache miss and an organization cost with another commit, BASE=COMMIT, and fail on a loss
	@test -n "$(BASE)" || { echo "say which commit: make bench-guard BASE=main"; exit 2; }
	@tmp=$$(mktemp -d); trap 'git worktree remove --force $$tmp/base; rm -rf $$tmp' EXIT; bad=0; \
	git worktree add --quiet --detach $$tmp/base $(BASE) && $(GO) -C $$tmp/base build -o $$tmp/writ-base ./cmd/writ && \
	for work in "" "--send stream=64 --conns 1 --loss 2us" "--send batch=64 --loss 2us" "--orgs 1000 --rules 20" \
	  "--policies 1000 --serve=--cache-mb=1 --loss 10us"; do \
	  echo "== writ bench guard $$work"; $(BIN) bench guard $$tmp/writ-base $$work $(GUARD) || bad=1; \
	done && echo "== writ bench growth" && \
	$(BIN) bench growth --base $$tmp/writ-base --orgs 20000 --step 4000 || bad=1; exit $$bad

fuzz: ## Fuzz every parser and the CEL/Rego differential, FUZZTIME each (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

clean: ## Remove what was built
	rm -rf bin

# Every target says in one line what it does; `make help` prints them.
GO      ?= go
TOOLS   := $(GO) tool -modfile=tools.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
OURS     = $$(git ls-files -co --exclude-standard -- '*.go' | grep -v _templ.go)

# Properties are tried with the same draws each time, so that a change is judged by what it changes; RAPID_SEED=0 draws anew.
export RAPID_SEED ?= 1

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

.PHONY: build
build: ## build ./nightshift
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o nightshift .

.PHONY: run
run: ## serve with the embedded database on http://127.0.0.1:8080
	$(GO) run . serve

.PHONY: demo
demo: ## a whole night: database, tenants, workers, documents, pages
	$(GO) run . demo

.PHONY: check
check: lint test ## lint and test: what to run before each commit

.PHONY: test
test: ## all tests
	$(GO) test -count=1 -timeout 40m ./...

# The decision core starts no goroutine (tidy_test.go holds that), and the tests of the API's routes and of the pages call the
# same server one after another, but for a few: none of that is looked at by the race detector.
RACED = $$($(GO) list ./... | grep -vE '^nightshift/(bench|docs|examples|handlers/(api|ui)|models/(memory|storetest)|scheduler|templates|web/browser)') \
	./scheduler/loop/... ./scheduler/relay/...

.PHONY: race
race: ## the tests of all that runs side by side, under the race detector, the long ones shortened
	$(GO) test -race -short -count=1 -timeout 40m $(RACED)
	$(GO) test -race -short -count=1 -timeout 40m -run 'UnderLoad|AGoneClient|AParkedWorker|WaitEnds' ./handlers/api

.PHONY: lint
lint: ## gofumpt, go vet, staticcheck and templ's format
	@bad=$$($(TOOLS) gofumpt -l $(OURS)); test -z "$$bad" || { echo "not gofumpt-ed (make format):"; echo "$$bad"; exit 1; }
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...
	$(GO) tool templ fmt -fail templates

.PHONY: format
format: ## format Go and templ files
	$(TOOLS) gofumpt -w $(OURS)
	$(GO) tool templ fmt templates

.PHONY: gen
gen: ## write what is generated: templ's Go code and whatever go:generate names
	$(GO) tool templ generate
	$(GO) generate ./...

.PHONY: fresh
fresh: ## fail when generated files are not as generated
	@seen() { { git diff; git ls-files -o --exclude-standard; } | git hash-object --stdin; }; \
	before=$$(seen); $(MAKE) --no-print-directory gen || exit 1; \
	test "$$before" = "$$(seen)" || { git status --short; echo "generated anew just now: commit the result of make gen"; exit 1; }

.PHONY: bench
bench: ## speed, as ratios against PostgreSQL's own limit measured beside it
	$(GO) run ./bench

.PHONY: bench-flows
bench-flows: ## workflows of 100,000 tasks over HTTP: cost of a completion, memory, fan-in, cancel
	$(GO) run ./bench -flows

.PHONY: bench-schedules
bench-schedules: ## what a tick costs among 1,000 and 100,000 schedules, and what looking a day ahead does
	$(GO) test ./scheduler/engine -count=1 -v -run "TestATickCosts|TestWhatALookAheadCosts" -ticks

.PHONY: sim
sim: ## the quality of decisions as figures with their goals; TRACE_DIR names recorded traces
	$(GO) run . simulate --figures

.PHONY: sim-quick
sim-quick: ## those figures that take seconds
	$(GO) run . simulate --figures --quick

.PHONY: chaos
chaos: ## break a running Nightshift for five minutes and look at what is left
	NIGHTSHIFT_CHAOS=1 $(GO) test -count=1 -v -timeout 40m ./chaos/...

.PHONY: image
image: ## build the container image
	docker build --build-arg VERSION=$(VERSION) -t nightshift:$(VERSION) -t nightshift:latest .

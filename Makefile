GO          ?= go
FUZZTIME    ?= 30s
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: check build fmt vet lint test race fuzz further vuln bench golden

check: fmt vet lint test   ## what a change must pass

build:                     ## both commands, into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/capture ./cmd/capture
	$(GO) build -trimpath -o bin/analyze ./cmd/analyze

fmt:
	test -z "$$(gofmt -s -l .)"

vet:
	$(GO) vet ./...
	$(GO) vet -tags further ./...

lint:
	$(GO) run $(STATICCHECK) ./...

test:
	$(GO) test ./...

race:                      ## the packages without DuckDB
	$(GO) test -race ./capture/... ./schema/...

fuzz:                      ## each fuzz target for FUZZTIME
	GO=$(GO) bash scripts/fuzz.sh $(FUZZTIME)

further:                   ## against other programs; scripts/ci-deps.sh installs them
	$(GO) test -tags further -run '^TestFurther' ./...

vuln:
	$(GO) run $(GOVULNCHECK) ./...

bench:                     ## decoding, compared with tcpdump
	bash scripts/bench-decode.sh

golden:                    ## rewrite the expected outputs; read the diff
	@packages=$$(grep -rl --include='*_test.go' '"update"' . | xargs -r -n1 dirname | sort -u); \
	test -z "$$packages" || $(GO) test $$packages -update

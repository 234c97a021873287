# mtc: `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO       ?= go
PYTHON   ?= python3
BIN      := bin
MTC      := $(BIN)/mtc
GOSRC    := $(shell $(GO) env GOROOT)/src
# Packages whose goroutines meet: they also run under the race detector.
RACE     := ./runtime/device/... ./runtime/engine/... ./runtime/optim/... ./runtime/program/... ./runtime/ops/... ./e2e/invariants
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help accuracy build demo test unit race lint fmt golden fuzz bench size models clean ci html hf-check lora-check tokenizer-check cuda-sdk cuda-build bench-gpu experiment-et cross

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/mtc (pure Go)
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -o $(MTC) ./cmd/mtc

demo: build ## train models/nano.mt on the Go standard library's source and sample from it (under 3 minutes)
	@bash tools/demo.sh $(MTC) "$(GOSRC)"

test: lint unit race ## the whole CPU test suite; CI runs this

unit: ## all tests, with and without the SIMD code
	$(GO) test -timeout 40m ./...
	GOEXPERIMENT=simd $(GO) test ./runtime/...

race: ## the packages with lanes under the race detector (needs a C compiler)
	@if CGO_ENABLED=1 $(GO) env CC >/dev/null && command -v $$($(GO) env CC) >/dev/null; then \
		echo "$(GO) test -race $(RACE)"; CGO_ENABLED=1 $(GO) test -timeout 40m -race $(RACE); \
	else echo "race: skipped, the race detector needs a C compiler and there is none"; fi

lint: ## gofmt and vet
	@f=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$f" ]; then echo "gofmt would change:"; echo "$$f"; exit 1; fi
	$(GO) vet ./...
	GOEXPERIMENT=simd $(GO) vet ./runtime/...

cross: ## everything builds for other systems and processors, of which this one cannot run any
	@for t in linux/arm64 darwin/arm64 windows/amd64; do echo "$$t"; \
		CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build ./... || exit 1; done

staticcheck: ## staticcheck, fetched as a module
	$(GO) run $(STATICCHECK) ./...
	GOEXPERIMENT=simd $(GO) run $(STATICCHECK) ./runtime/vec ./runtime/optim ./runtime/gemm

golden: ## rewrite every golden file (then read the diff)
	MTC_UPDATE=1 $(GO) test -timeout 40m ./...

models: build ## compile every model of models/ without building its program
	@for m in $$(ls models/*.mt | grep -v '/llama.mt'); do \
		echo "$$m"; $(MTC) compile --no-build -o $(BIN)/models/$$(basename $$m .mt) --placement stream --recompute all $$m >/dev/null || exit 1; done

fuzz: ## every fuzz target for 30 s
	@bash tools/fuzz.sh 30s

bench: ## kernels and training steps against PyTorch on this CPU (needs Python with torch)
	@bash tools/bench/run.sh

accuracy: ## predicted beside measured steps and memory: builds programs and runs them (TARGET=cuda on a machine with a GPU; takes an idle one)
	@python3 tools/accuracy/accuracy.py build --target $(or $(TARGET),cpu)
	@if [ "$(or $(TARGET),cpu)" = cpu ] || command -v nvidia-smi >/dev/null; then python3 tools/accuracy/accuracy.py run --target $(or $(TARGET),cpu); \
	else echo "no GPU here: carry build/accuracy/cuda.tar.xz to one and run tools/accuracy/accuracy.py run --target cuda"; fi

cuda-sdk: ## fetch what a build for CUDA needs into .sdk (a toolkit of the system is used when there is one)
	@bash tools/cuda/sdk.sh

cuda-build: cuda-sdk ## build everything for CUDA and compile every kernel, on a machine without a GPU
	@bash tools/cuda/build.sh

experiment-et: build ## compare routers of a mixture of experts over seeds (DATA=files or a packed folder, TARGET=cuda; goes on where it was stopped)
	$(GO) run ./tools/experiments/et --mtc bin/mtc --data "$(DATA)" --target $(or $(TARGET),cpu) --out runs/et $(ARGS)

bench-gpu: cuda-sdk ## training steps on a GPU beside what others reach: builds the programs, and runs them where there is a GPU
	@bash tools/cuda/bench.sh build
	@if command -v nvidia-smi >/dev/null; then bash tools/cuda/bench.sh run; else echo "no GPU here: carry build/cuda/bench.tar.xz to one and run tools/cuda/bench.sh run"; fi

hf-check: build ## exports against transformers (needs Python with torch and transformers; PYTHON=...)
	$(PYTHON) tools/fixtures/hf_check.py $(MTC)

lora-check: build ## exports of adapters against PEFT (needs Python with torch, transformers and peft; PYTHON=...)
	$(PYTHON) tools/fixtures/lora_check.py $(MTC)

tokenizer-check: ## tokenizers against Hugging Face's `tokenizers` on 12 MB of mixed text (needs Python with tokenizers)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(PYTHON) tools/fixtures/tokenizers_check.py --big "$$dir" 10 && \
		MTC_TOKENIZER_CHECK="$$dir" $(GO) test -count=1 -v -timeout 30m -run TestBigCheck ./runtime/tokenizer

html: ## the pages of `mtc inspect --html` in a headless Chromium, where there is one
	@bash tools/html/check.sh

size: ## lines of the runtime outside ops, against its budgets
	@bash tools/size.sh

clean: ## remove what was built
	rm -rf $(BIN) build runs

# What is needed: Go and git. `make help` lists the targets.

GO          ?= go
BIN         := bin/tarn
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/tarn: static, stripped
	@mkdir -p $(dir $(BIN))
	GO='$(GO)' packaging/binary.sh $(abspath $(BIN))

.PHONY: run
run: build ## build and serve on 127.0.0.1:2379, data in ./tarn-data
	$(BIN) serve

.PHONY: test
test: lint ## lint, then all tests
	@test -n '$(RACE)' || echo 'no C compiler is found: testing without the race detector'
	$(GO) test -timeout 30m $(RACE) ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .) && \
		if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags manual ./cmd/tarn
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags manual ./cmd/tarn

# A module of its own, so that etcd's server stays out of go.mod.
.PHONY: test-diff
test-diff: ## compare with a real etcd, request by request
	cd store/etcdapi/difftest && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./...

# A module of its own, for its dependencies too.
.PHONY: test-k8s-storage
test-k8s-storage: ## run the apiserver's own storage tests, from k8s.io/apiserver
	cd store/etcdapi/k8stest && $(GO) vet ./... go.etcd.io/etcd/server/v3/embed && \
		$(GO) run $(STATICCHECK) ./... go.etcd.io/etcd/server/v3/embed && $(GO) test ./... && $(GO) run .

# A module of its own, for its dependencies too. ROBUSTNESS='-duration 2h' runs longer.
ROBUSTNESS ?= -short

.PHONY: test-robustness
test-robustness: ## check random clients' histories while the server is killed, paused, slow or full
	cd store/etcdapi/robustness && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./... && $(GO) run . $(ROBUSTNESS)

# A module of its own, for its dependencies too.
.PHONY: test-etcd-tools
test-etcd-tools: ## run etcd's own tests of etcdctl, etcdutl and clientv3
	cd store/etcdapi/toolstest && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./... && $(GO) run .

# Two modules of their own, for their dependencies too: one for each version of the kubelet.
.PHONY: test-kubelet
test-kubelet: ## hold what is foretold of the kubelet's eviction against the kubelet's code
	for module in . v136; do \
		(cd zfs/eviction/kubelettest/$$module && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./...) || exit 1; \
	done

# Needs what test-zfs-vm needs. KUBELETTEST='quota ext4' runs fewer; emulated, a case takes half a minute.
KUBELETTEST ?=

.PHONY: test-kubelet-zfs-vm
test-kubelet-zfs-vm: ## the same for tarn kubelet check and config, on real ZFS in a virtual machine
	GO='$(GO)' zfs/eviction/kubelettest/zfs.sh $(KUBELETTEST)

# Rounds of kill -9, and scripts whose every operation is cut off or fails.
CRASH_ROUNDS ?= 300
CRASH_CASES ?= 20

.PHONY: test-crash
test-crash: ## the long crash tests: kill -9, power cuts, I/O errors, full disks
	TARN_CRASH_ROUNDS=$(CRASH_ROUNDS) $(GO) test -count=1 -timeout 30m -v -run '^TestCrash$$' ./cmd/tarn
	TARN_CRASH_CASES=$(CRASH_CASES) $(GO) test -count=1 -timeout 60m -run 'PowerCut|AtEveryOperation' ./store

# Tests that are called TestZFS…, built with the tag zfs: each makes a pool on a sparse file
# and destroys it. ZFSTEST=Snapshot runs fewer.
ZFSTEST ?=
ZFS_PACKAGES := ./zfs/... ./cmd/tarn

.PHONY: test-zfs
test-zfs: ## the tests on real ZFS, as root on a machine with ZFS
	@test "$$(id -u)" = 0 || { echo 'test-zfs needs root; test-zfs-vm does not need ZFS here'; exit 1; }
	@zpool list >/dev/null || { echo 'test-zfs needs the ZFS kernel module; test-zfs-vm brings its own'; exit 1; }
	$(GO) vet -tags zfs $(ZFS_PACKAGES)
	$(GO) test -tags zfs -count=1 -timeout 30m -run 'TestZFS.*$(ZFSTEST)' $(ZFS_PACKAGES)

# Boots a virtual machine, see packaging/vm/README.md. Needs root, and Debian for apt-get.
.PHONY: test-zfs-vm
test-zfs-vm: ## the tests on real ZFS in a virtual machine; the first run builds its image
	GO='$(GO)' packaging/vm/test-zfs.sh '$(ZFSTEST)' $(ZFS_PACKAGES)

# Needs what test-zfs-vm needs. A boot for each cut: about half an hour on a machine with KVM.
POWER_CUTS ?= 30

.PHONY: test-zfs-powercut
test-zfs-powercut: ## cut the power of a virtual machine under load POWER_CUTS (30) times
	GO='$(GO)' packaging/powercut.sh --control
	GO='$(GO)' packaging/powercut.sh $(POWER_CUTS)

# Needs what test-zfs-vm needs. INSTALLEDTEST='upgrade reboot' runs fewer.
INSTALLEDTEST ?=

.PHONY: test-installed-vm
test-installed-vm: packages ## the package in virtual machines: upgrades, reboots, power cuts, rights
	cd packaging/installed && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./...
	GO='$(GO)' packaging/installed/run.sh $(INSTALLEDTEST)

# At least 1m: a fuzz test begins by running all that it knows, and only then makes something new.
FUZZTIME ?= 2m
FUZZPARALLEL ?= 2

# Each input that reaches new code is first made shorter, by default for up to a minute.
.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (2m, at least 1m) on FUZZPARALLEL (2) processors
	@grep -rE '^func Fuzz' --include='*_test.go' cmd store | sed -nE 's/^(.*)\/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*).*/\1 \2/p' | \
	while read -r dir name; do \
		echo "== $$name in $$dir"; \
		(cd $$dir && $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) \
			-fuzzminimizetime 20x -parallel $(FUZZPARALLEL) . </dev/null) || exit 1; \
	done

.PHONY: bench
bench: bench-sidebyside bench-micro ## all benchmarks

# A module of its own, for its dependencies too. BENCH='-quick -w put,list' runs less.
BENCH ?=

.PHONY: bench-sidebyside
bench-sidebyside: ## measure tarn beside a real etcd, with the flags BENCH
	cd store/etcdapi/sidebyside && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test ./... && $(GO) run . $(BENCH)

# Needs what test-zfs-vm needs.
.PHONY: bench-zfs-snapshot
bench-zfs-snapshot: ## measure snapshots of 1 GB on ZFS in a virtual machine, beside a real etcd
	GO='$(GO)' packaging/bench-snapshot.sh $(BENCH)

.PHONY: bench-micro
bench-micro: ## run the micro benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The files of an installed Tarn, without users: systemd-sysusers and systemd-tmpfiles --create make the
# rest, see docs/install.md. An /etc/tarn/tarn.yaml that is there stays.
DESTDIR ?=

.PHONY: install
install: build ## install binary, units, manual and completions below DESTDIR
	GO='$(GO)' packaging/install.sh $(abspath $(BIN)) '$(DESTDIR)'

.PHONY: uninstall
uninstall: ## remove what install made; configuration and data stay
	GO='$(GO)' packaging/install.sh --remove $(abspath $(BIN)) '$(DESTDIR)'

.PHONY: packages
packages: ## make .deb and .rpm for amd64 and arm64 in dist/
	GO='$(GO)' packaging/packages.sh

# Debian's lintian, rpmlint, mandoc and systemd are installed with apt-get if they are missing.
.PHONY: lint-packages
lint-packages: ## lintian, rpmlint, systemd-analyze and mandoc on what is in dist/
	packaging/lint.sh

.PHONY: test-packages
test-packages: ## make the packages twice, install them into empty roots, run the arm64 binary
	GO='$(GO)' packaging/test-packages.sh

.PHONY: clean
clean: ## remove what build and packages made
	rm -rf bin dist

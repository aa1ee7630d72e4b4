#!/bin/bash
# Written by gpuplan: looks at the GPUs of this node. slurmd runs it every five minutes, the prolog
# and the epilog before and after each job. A node with a fault takes no more jobs; one whose GPUs a
# start of the machine mends is started again when its jobs have ended.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
faults=()
resets=()

case $node in
h100-01 | h100-02 | h100-03 | h100-04 | h100-05 | h100-06 | h100-07 | h100-08) wanted=8 ;;
a100-01) wanted=8 ;;
a100-02) wanted=8 ;;
a100-03 | a100-04) wanted=8 ;;
l40s-01) wanted=4 ;;
l40s-02 | l40s-03 | l40s-04) wanted=4 ;;
*) wanted=0 ;;
esac

if [[ $wanted -gt 0 ]]; then
  if ! listed=$(timeout 60 nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total \
    --format=csv,noheader 2>&1); then
    faults+=("nvidia-smi fails")
    listed=
  fi
  there=$(grep -c . <<<"$listed" || true)
  if [[ $there -ne $wanted && ! ${faults[*]} ]]; then
    faults+=("$there GPUs of $wanted")
  fi
  while IFS=', ' read -r gpu errors; do
    if [[ $errors =~ ^[1-9][0-9]*$ ]]; then resets+=("GPU $gpu has $errors ECC errors"); fi
  done <<<"$listed"
  # Drivers before 550 do not know the field, GPUs without a fabric have no state.
  if fabric=$(timeout 60 nvidia-smi --query-gpu=index,fabric.state --format=csv,noheader 2>/dev/null); then
    while IFS=', ' read -r gpu state; do
      if [[ $state == "In Progress" || $state == "Not Started" ]]; then
        faults+=("the fabric of GPU $gpu is not ready")
      fi
    done <<<"$fabric"
  fi
  # Of the kernel's messages since the machine was started: errors after which a GPU is not to be
  # trusted before a reset (NVIDIA's list of Xid errors).
  fatal=$(dmesg 2>/dev/null | sed -nE 's/.*NVRM: Xid \([^)]*\): (48|64|74|79|95|119),.*/\1/p' | sort -un | tr '\n' ' ')
  if [[ $fatal ]]; then resets+=("Xid ${fatal% }"); fi
fi

if [[ ! ${faults[*]}${resets[*]} ]]; then exit 0; fi
reason=$(printf '%s; ' "${faults[@]}" "${resets[@]}")
reason="gpuplan: ${reason%; }"
up=$(cut -d. -f1 /proc/uptime)
state=$(scontrol --oneliner show node "$node" 2>/dev/null | grep -oE ' State=[A-Z+_*]+' || true)
if [[ $state != *DRAIN* && $state != *REBOOT* ]]; then
  # What an hour ago's start has not mended, another one will not.
  if [[ ! ${faults[*]} && $up -gt 3600 ]]; then
    scontrol reboot ASAP nextstate=RESUME reason="$reason" "$node"
  else
    scontrol update nodename="$node" state=DRAIN reason="$reason"
  fi
fi
echo "$reason" >&2
exit 1

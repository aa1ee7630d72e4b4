#!/bin/bash
# Written by gpuplan: cuts the GPUs of this node as the plan says, before slurmd starts. MIG instances
# do not outlive a start of the machine. ./mig.sh --undo takes them away.
set -euo pipefail
node=${1-}
undo=
if [[ $node == --undo ]]; then
  undo=yes
  node=
fi
node=${node:-$(hostname -s)}

cut_gpu() { # NODE GPU PROFILE:START,...
  if [[ $1 != "$node" ]]; then return; fi
  there=$(nvidia-smi mig -i "$2" -lgi 2>/dev/null | awk '$3 == "MIG" { split($7, at, ":"); print $4 ":" at[1] }' | sort | paste -sd, -)
  if [[ $undo ]]; then
    if [[ $there ]]; then
      nvidia-smi mig -i "$2" -dci
      nvidia-smi mig -i "$2" -dgi
    fi
    nvidia-smi -i "$2" -mig 0
  elif [[ -z $there ]]; then
    nvidia-smi -i "$2" -mig 1
    nvidia-smi mig -i "$2" -cgi "$3" -C
  elif [[ $there != "$(tr , '\n' <<<"$3" | sort | paste -sd, -)" ]]; then
    echo "GPU $2 is cut as $there, and the plan says $3: end its jobs, then ./mig.sh --undo" >&2
    exit 1
  fi
}

cut_gpu a100-02 1 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 2 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 3 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 4 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 5 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 6 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6
cut_gpu a100-02 7 1g.10gb:0,1g.10gb:1,1g.10gb:2,1g.10gb:3,1g.10gb:4,1g.10gb:5,1g.10gb:6

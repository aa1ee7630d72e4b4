#!/bin/bash
# Written by gpuplan: after a job. Whatever it left on its GPUs is ended, then the node looked at.
set -uo pipefail
here=$(dirname "$0")
if [[ ${SLURM_JOB_GPUS-} ]] && command -v nvidia-smi >/dev/null; then
  timeout 60 nvidia-smi --id="$SLURM_JOB_GPUS" --query-compute-apps=pid --format=csv,noheader |
    while read -r pid; do
      if [[ $pid =~ ^[0-9]+$ ]]; then kill -KILL "$pid" 2>/dev/null || true; fi
    done
fi
"$here/health.sh" || exit 1
exit 0

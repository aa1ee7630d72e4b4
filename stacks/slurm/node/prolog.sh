#!/bin/bash
# Written by gpuplan: before a job. A node that fails is drained, and the job goes elsewhere.
set -uo pipefail
here=$(dirname "$0")
"$here/health.sh" || exit 1
# What is left of others on the GPUs of the job.
if [[ ${SLURM_JOB_GPUS-} ]] && command -v nvidia-smi >/dev/null; then
  if left=$(timeout 60 nvidia-smi --id="$SLURM_JOB_GPUS" --query-compute-apps=pid --format=csv,noheader) && [[ $left ]]; then
    echo "gpuplan: processes of others on GPUs $SLURM_JOB_GPUS: ${left//$'\n'/ }" >&2
    exit 1
  fi
fi
exit 0

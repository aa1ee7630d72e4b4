#!/bin/bash
# Written by gpuplan: fetches the images of the jobs into the shared storage, once for all nodes.
# Run it where enroot is installed, before the first job.
set -euo pipefail
folder=/lustre/gpuplan/images
mkdir -p -- "$folder"

fetch() { # FILE SOURCE
  if [[ -e $folder/$1 ]]; then return; fi
  # A copy that was cut short never has the name.
  rm -f -- "$folder/.$1"
  enroot import --output "$folder/.$1" "$2"
  mv -- "$folder/.$1" "$folder/$1"
}

fetch nemo-5d1bada3dc0c.sqsh 'docker://nvcr.io#nvidia/nemo:26.04'
fetch pytorch-notebook-63123276ee2e.sqsh 'docker://quay.io#jupyter/pytorch-notebook:cuda12-python-3.13.14'
fetch vllm-openai-e65371b7583f.sqsh docker://vllm/vllm-openai:v0.27.1

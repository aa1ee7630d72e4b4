#!/bin/bash
# Written by gpuplan: submits the jobs, each after those it waits for. One that waits or runs already
# stays as it is.
#   ./submit.sh            all of them
#   ./submit.sh NAME...    these, and what comes after them
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
declare -A chosen ids
for name; do
  case $name in
  full-70b) ;;
  assistant) ;;
  labels) ;;
  desks) ;;
  *)
    echo "$name: no job of this stack" >&2
    exit 2
    ;;
  esac
  chosen[$name]=yes
done
all=
if [[ $# -eq 0 ]]; then all=yes; fi

there() { # NAME: the number of the job of that name, empty where none waits or runs
  squeue --noheader --me --name="$1" --format=%F | sort -un | tail -n 1
}

submit() { # NAME, and the names of those that it waits for
  local name=$1 waits='' other id
  shift
  for other; do
    if [[ ${chosen[$other]-} ]]; then chosen[$name]=yes; fi
  done
  if [[ ! $all && ! ${chosen[$name]-} ]]; then return; fi
  id=$(there "$name")
  if [[ $id ]]; then
    echo "$name: job $id, as before"
    return
  fi
  for other; do
    id=${ids[$other]-}
    if [[ ! $id ]]; then id=$(there "$other"); fi
    if [[ $id ]]; then
      waits+=:$id
    else
      echo "$name: $other neither waits nor runs, and is not waited for" >&2
    fi
  done
  # What waits for a job that failed would wait for ever.
  id=$(sbatch --parsable ${waits:+--dependency="afterok$waits" --kill-on-invalid-dep=yes} "jobs/$name.sbatch")
  ids[$name]=${id%%;*}
  echo "$name: job ${ids[$name]}${waits:+, after ${waits#:}}"
}

submit full-70b
submit assistant
submit labels
submit desks

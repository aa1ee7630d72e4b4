#!/bin/bash
# Written by gpuplan: qualities of service and accounts, as often as you like. It takes nothing away.
# ./accounts.sh --undo takes away the accounts, which fails while users or jobs have them.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C

there() { # KIND NAME: its own field is called after a kind, but for qos
  local field=$1
  if [[ $1 == qos ]]; then field=name; fi
  [[ $(sacctmgr --noheader --parsable2 show "$1" where "$field=$2" "format=$field") == "$2" ]]
}

if [[ ${1-} == --undo ]]; then
  if there account training; then sacctmgr --immediate delete account name=training; fi
  if there account training_spare; then sacctmgr --immediate delete account name=training_spare; fi
  if there account products; then sacctmgr --immediate delete account name=products; fi
  if there account products_spare; then sacctmgr --immediate delete account name=products_spare; fi
  if there account research; then sacctmgr --immediate delete account name=research; fi
  if there account research_spare; then sacctmgr --immediate delete account name=research_spare; fi
  exit
fi

quality() { # NAME FIELDS...
  local name=$1
  shift
  if ! there qos "$name"; then
    sacctmgr --immediate --quiet add qos "$name"
  fi
  # Fails where nothing changes, which is no fault; what is then there is looked at.
  sacctmgr --immediate --quiet modify qos "$name" set "$@" || true
}

if ! there cluster slurm; then
  sacctmgr --immediate --quiet add cluster slurm
fi
quality low-preemptible Priority=5 GraceTime=30 PreemptMode=requeue Preempt=''
quality normal-preemptible Priority=50 GraceTime=30 PreemptMode=requeue Preempt=''
quality high-preemptible Priority=500 GraceTime=30 PreemptMode=requeue Preempt=''
quality critical-preemptible Priority=5000 GraceTime=30 PreemptMode=requeue Preempt=''
quality low Priority=10 GraceTime=0 PreemptMode=cluster Preempt=low-preemptible,normal-preemptible,high-preemptible,critical-preemptible
quality normal Priority=100 GraceTime=0 PreemptMode=cluster Preempt=low-preemptible,normal-preemptible,high-preemptible,critical-preemptible
quality high Priority=1000 GraceTime=0 PreemptMode=cluster Preempt=low-preemptible,normal-preemptible,high-preemptible,critical-preemptible
quality critical Priority=10000 GraceTime=0 PreemptMode=cluster Preempt=low-preemptible,normal-preemptible,high-preemptible,critical-preemptible
sacctmgr --immediate load file=etc/accounts.cfg

#!/bin/bash
# Written by gpuplan: puts the configuration of this machine in place. Run it as root, first on the
# controller, then on each node.
#   ./deploy.sh          shows what would change
#   ./deploy.sh --yes    changes it, and has Slurm read it
#   ./deploy.sh --undo   puts back what was there before the last change
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
target=/etc/slurm
kept=$target/.before-gpuplan
controller=slurm-01
database=slurm-01
# What a daemon reads only when it starts (slurm.conf(5), scontrol(1)); it reads all else again.
at_start='ClusterName|SlurmctldHost|SlurmUser|StateSaveLocation|SlurmdSpoolDir|AuthType|CredType'
at_start+='|SelectType|SelectTypeParameters|GresTypes|ProctrackType|TaskPlugin|JobContainerType|TopologyPlugin|SwitchType'
at_start+='|JobAcctGatherType|AccountingStorageType|AccountingStorageHost|SchedulerType|PriorityType|PreemptType'

is() { [[ $(hostname) == "$1" || $(hostname -s) == "$1" ]]; }

# SOURCE DESTINATION of this machine
wanted() {
  for name in slurm.conf gres.conf cgroup.conf job_container.conf topology.conf; do
    if [[ -e etc/$name ]]; then echo "etc/$name $target/$name"; fi
  done
  for name in prolog.sh epilog.sh health.sh; do echo "node/$name $target/gpuplan/$name"; done
  if is "$database"; then echo "etc/slurmdbd.conf $target/slurmdbd.conf"; fi
}

apply() { # as the change from the folder $1 to what is there now asks
  local before=$1
  if is "$database" && ! cmp -s "$before/slurmdbd.conf" "$target/slurmdbd.conf"; then
    systemctl restart slurmdbd
  fi
  local old new
  old=$(grep -E "^($at_start)=" "$before/slurm.conf" 2>/dev/null | sort || true)
  new=$(grep -E "^($at_start)=" "$target/slurm.conf" 2>/dev/null | sort || true)
  if is "$controller"; then
    if [[ $old != "$new" ]]; then systemctl restart slurmctld; else scontrol reconfigure; fi
  elif [[ $old != "$new" ]]; then
    systemctl restart slurmd
  else
    systemctl reload slurmd # the controller asked before the files were here
  fi
}

case ${1-} in
--undo)
  if [[ ! -d $kept ]]; then
    echo "nothing was changed here" >&2
    exit 1
  fi
  now=$(mktemp -d)
  trap 'rm -rf -- "$now"' EXIT
  while read -r source destination; do
    name=${destination#"$target/"}
    mkdir -p -- "$now/$(dirname "$name")"
    if [[ -e $destination ]]; then cp -p -- "$destination" "$now/$name"; fi
    if [[ -e $kept/$name ]]; then
      cp -p -- "$kept/$name" "$destination"
    else
      rm -f -- "$destination"
    fi
  done < <(wanted)
  if [[ -e $target/slurm.conf ]]; then apply "$now"; fi
  rm -rf -- "$kept"
  exit
  ;;
"" | --yes) ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac

changed=
while read -r source destination; do
  if ! cmp -s "$source" "$destination"; then
    changed=yes
    old=$destination
    if [[ ! -e $old ]]; then old=/dev/null; fi
    diff -u --label "$destination" --label "$destination" "$old" "$source" || true
  fi
done < <(wanted)
if [[ ! $changed ]]; then
  echo "nothing to change"
  exit
fi
if [[ ${1-} != --yes ]]; then exit; fi

rm -rf -- "$kept"
mkdir -p -- "$kept/gpuplan" "$target/gpuplan"
while read -r source destination; do
  name=${destination#"$target/"}
  if [[ -e $destination ]]; then cp -p -- "$destination" "$kept/$name"; fi
  mode=644
  if [[ $source == node/* ]]; then mode=755; fi
  install -m "$mode" -- "$source" "$destination"
  # slurmdbd refuses a file that others may read.
  if [[ $name == slurmdbd.conf ]]; then install -m 600 -o slurm -- "$source" "$destination"; fi
done < <(wanted)
apply "$kept"

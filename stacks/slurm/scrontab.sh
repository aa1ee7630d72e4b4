#!/bin/bash
# Written by gpuplan: what recurs, as lines of your scrontab; other lines of it stay.
#   ./scrontab.sh           shows what would change
#   ./scrontab.sh --yes     changes it
#   ./scrontab.sh --undo    takes the lines away
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
begin='# gpuplan slurm: begin'
end='# gpuplan slurm: end'
folder=$(pwd -P)
if [[ ! $folder =~ ^[A-Za-z0-9/._-]+$ ]]; then
  echo "$folder: a line of a scrontab takes letters, digits, '.', '_' and '-' alone" >&2
  exit 1
fi

lines() {
  echo "$begin"
  echo '#SCRON --job-name=full-70b_cron'
  echo '#SCRON --partition=h100-sxm-80gb'
  echo '#SCRON --account=training'
  echo '#SCRON --qos=high'
  echo '#SCRON --time=00:10:00'
  echo '#SCRON --mem=256M'
  echo '#SCRON --open-mode=append'
  echo '#SCRON --output=/lustre/gpuplan/slurm/%x.log'
  echo "0 1 1 * * cd $folder && ./submit.sh full-70b"
  echo '#SCRON --job-name=labels_cron'
  echo '#SCRON --partition=a100-sxm-80gb'
  echo '#SCRON --account=products_spare'
  echo '#SCRON --qos=low-preemptible'
  echo '#SCRON --time=00:10:00'
  echo '#SCRON --mem=256M'
  echo '#SCRON --open-mode=append'
  echo '#SCRON --output=/lustre/gpuplan/slurm/%x.log'
  echo "0 20 * * * cd $folder && ./submit.sh labels"
  echo "$end"
}

undo=
case ${1-} in
"" | --yes) ;;
--undo) undo=yes ;;
*)
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
# Of who has none it says so, on its standard output.
scrontab -l 2>/dev/null | sed '/^no crontab for /d' >"$work/before" || true
awk -v begin="$begin" -v end="$end" '$0 == begin { own = 1 } !own { print } $0 == end { own = 0 }' \
  "$work/before" >"$work/after"
if [[ ! $undo ]]; then lines >>"$work/after"; fi
if cmp -s "$work/before" "$work/after"; then
  echo "nothing to change"
  exit
fi
diff -u --label scrontab --label scrontab "$work/before" "$work/after" || true
if [[ ${1-} ]]; then
  if [[ -s $work/after ]]; then scrontab "$work/after"; else scrontab -r; fi
fi

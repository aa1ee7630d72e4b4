#!/bin/bash
# Written by gpuplan: one address for each service, wherever its jobs run. Start it on the machine that
# shall have the addresses, with haproxy; it stays, and follows jobs that come, move and end.
set -euo pipefail
endpoints=/lustre/gpuplan/slurm/endpoints
work=$(mktemp -d)
haproxy=
trap 'rm -rf -- "$work"; if [[ $haproxy ]]; then kill -TERM "$haproxy" 2>/dev/null; fi' EXIT

service() { # NAME PORT HEALTH: a port of this machine, and where the replicas of a service are now
  printf '\nlisten %s\n    bind :%s\n    balance leastconn\n' "$1" "$2"
  if [[ $3 ]]; then printf '    option httpchk GET %s\n' "$3"; fi
  local path address
  for path in "$endpoints/$1"/*; do
    # A job may end, or write, at this very moment.
    address=$(cat -- "$path" 2>/dev/null) || continue
    if [[ ${path##*/} =~ ^[0-9]+$ && $address =~ ^[A-Za-z0-9._-]+:[0-9]+$ ]]; then
      printf '    server %s %s\n' "${path##*/}" "$address"
    fi
  done
}

configuration() {
  cat <<'EOF'
global
    log stdout format raw local0 notice
    maxconn 4096

defaults
    log global
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout queue 1h
    timeout check 10s
    # One that does not answer gets no requests until it does; a name that is unknown stops nothing.
    default-server check inter 5s fall 3 rise 1 init-addr libc,none
EOF
  service assistant 8000 /health
}

configuration >"$work/now"
haproxy -W -f "$work/now" &
haproxy=$!
while sleep 2; do
  kill -0 "$haproxy" # or all of it ends, for whatever keeps it running to start it again
  configuration >"$work/next"
  if ! cmp -s "$work/now" "$work/next" && haproxy -c -q -f "$work/next"; then
    mv -- "$work/next" "$work/now"
    kill -USR2 "$haproxy" # reads it, and lets requests of before end
  fi
done

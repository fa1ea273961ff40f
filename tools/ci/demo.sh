#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What does Weft do, shown with programs that know nothing of it? usage: demo.sh BUILD_DIR
set -euo pipefail

build=$(cd "$1" && pwd)
export FI_PROVIDER_PATH=$build/lib
port=$((20000 + RANDOM % 10000))
work=$(mktemp -d)
server=

clean_up() {
  [[ -z "$server" ]] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

step() { printf '\n-- %s\n' "$*"; }

# Both ends of a program: SERVER... -- CLIENT...; the client's output is printed once both ended well.
both_ends() {
  local server_command=()
  while [[ "$1" != -- ]]; do
    server_command+=("$1")
    shift
  done
  shift
  timeout 60 "${server_command[@]}" >"$work/server" 2>&1 &
  server=$!
  local try
  for try in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    if timeout 60 "$@" >"$work/client" 2>&1; then
      break
    fi
    ((try < 10)) || fail
  done
  wait "$server" || fail
  server=
  cat "$work/client"
  port=$((port + 1))
}

pingpong() {
  local command=(fi_pingpong -p weft -e rdm -S all "$@")
  both_ends "${command[@]}" -B "$port" -- "${command[@]}" -P "$port" 127.0.0.1
}

queue_pairs() {
  local command=("$build/bin/weft" run ibv_rc_pingpong -g 0 -p "$port" "$@")
  both_ends "${command[@]}" -- "${command[@]}" 127.0.0.1
}

fail() {
  echo "the two processes did not come to an end; the server said:"
  cat "$work/server"
  echo "and the client:"
  cat "$work/client"
  exit 1
} >&2

step "Debian's libfabric finds Weft's provider in $FI_PROVIDER_PATH:"
fi_info -p weft | head -n 12

step "Debian's fi_pingpong, two processes, every byte compared (fi_pingpong -p weft -e rdm -c):"
pingpong -c

step "The same with tagged messages and without the comparison, 200 rounds per size:"
pingpong -m tagged -I 200

step "A program for libibverbs, Debian's ibv_rc_pingpong, with the messages compared (weft run ibv_rc_pingpong -g 0 -c):"
queue_pairs -c

step "More figures, beside the other providers of this machine: ./dev bench"
cat <<TEXT

What happened: unmodified programs, linked to Debian's libfabric and libibverbs alone, exchanged messages
through $(basename "$FI_PROVIDER_PATH")/libweft-fi.so and $(basename "$FI_PROVIDER_PATH")/verbs/libibverbs.so.1. Those of libfabric went through
shared memory, those of libibverbs in RoCEv2 packets over the loopback; no RDMA hardware, kernel module, daemon or
root took part. Run a program of your own in the same way:
  FI_PROVIDER_PATH=$FI_PROVIDER_PATH FI_PROVIDER=weft YOUR_PROGRAM
  $build/bin/weft run YOUR_VERBS_PROGRAM
TEXT

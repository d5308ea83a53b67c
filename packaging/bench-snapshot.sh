#!/usr/bin/env bash
# Measures in a virtual machine, on a dataset of ZFS, what a snapshot of a store of 1 GB
# takes: tarn snapshot create, and etcdctl snapshot save of a real etcd with the same data.
#
#   bench-snapshot.sh [flag of sidebyside...]     such as -quick
#
# GO, VM (the script that runs a command in a machine) and VM_TIMEOUT (seconds) can be set.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
vm=${VM:-$here/vm/run.sh}
go=${GO:-go}

work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
build() { CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o "$work/$1" "$2"; }
(cd "$root" && build tarn ./cmd/tarn)
(cd "$root/store/etcdapi/sidebyside" &&
  build sidebyside . && build etcd go.etcd.io/etcd/server/v3 && build etcdctl go.etcd.io/etcd/etcdctl/v3)

cat >"$work/bench.sh" <<'BENCH'
set -eu
zpool create -o ashift=12 -O recordsize=16K -O compression=lz4 -O atime=off bench /dev/disk/by-id/virtio-zd0
export ETCD_BIN=./etcd ETCDCTL_BIN=./etcdctl TARN_BIN=./tarn
exec ./sidebyside -w snapshot -rounds 1 -dir /bench "$@"
BENCH
bash "$vm" --memory 4096 --disk-size 16G --timeout "${VM_TIMEOUT:-5400}" "$work" bash bench.sh "$@"

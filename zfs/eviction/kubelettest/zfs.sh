#!/usr/bin/env bash
# Holds tarn kubelet check against the kubelet's code on real ZFS in a virtual machine: each case of
# zfs-cases.sh, or those that are named.
#
#   zfs.sh [CASE...]
#
# GO, VM (the script that runs a command in a machine) and VM_TIMEOUT (seconds) can be set.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
go=${GO:-go}
work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-kubelet-zfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$root" && CGO_ENABLED=0 "$go" build -o "$work/tarn" ./cmd/tarn)
# Static, for the C library of the machine is another one. Without cgo all of Kubernetes would be compiled once more.
static=()
[ "$("$go" env CGO_ENABLED)" = 0 ] || static=(-ldflags '-s -w -linkmode external -extldflags -static')
(cd "$here" && "$go" build "${static[@]}" -o "$work/kubelettest" . 2>"$work/build.log") || { cat "$work/build.log"; exit 1; }
cp "$here/zfs-cases.sh" "$work"
bash "${VM:-$root/packaging/vm/run.sh}" --timeout "${VM_TIMEOUT:-3600}" --disk 2 --disk-size 40G "$work" bash zfs-cases.sh "$@"

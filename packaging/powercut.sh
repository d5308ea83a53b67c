#!/usr/bin/env bash
# Cuts the power of a virtual machine under load, again and again, and has each next boot
# check that nothing that was acknowledged is lost.
#
#   powercut.sh [CUTS]       30 by default
#   powercut.sh --control    with sync=disabled, where a cut must lose something: if it does
#                            not, the test can find nothing
#
# The disk has a volatile write cache. Clients run in the machine; what they sent and what
# they were told is kept by them in a folder of this machine, which goes on. Each boot
# imports the pool, checks what the last one left, and is the load of the next cut.
#
# GO, VM (the script that runs a command in a machine), VM_TIMEOUT (seconds for one boot)
# can be set. What is left of a failed run is kept, and named.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
vm=${VM:-$here/vm/run.sh}
timeout=${VM_TIMEOUT:-600}
sync=standard cuts=30
case ${1:-} in
  --control) sync=disabled cuts=3 ;;
  '') ;;
  *) cuts=$1 ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-powercut.XXXXXX")
mkdir "$work/host" "$work/state"
(cd "$root" && CGO_ENABLED=0 ${GO:-go} test -c -tags zfs -o "$work/host/tarn.test" ./cmd/tarn)

cat >"$work/host/boot.sh" <<'BOOT'
set -eu
boot=$1 sync=$2 cut=$3
healthy() {
  state=$(zpool status -x cut)
  case $state in *"is healthy") ;; *) echo "$state"; exit 1 ;; esac
}
if [ "$boot" = 1 ]; then
  zpool create -o ashift=12 -O recordsize=16K -O compression=lz4 -O atime=off -O sync="$sync" cut /dev/disk/by-id/virtio-zd0
else
  zpool import cut
  healthy
fi
export TARN_POWERCUT_DATA=/cut TARN_POWERCUT_JOURNAL=/host/journal
export TARN_POWERCUT_BOOT="$boot" TARN_POWERCUT_COMMAND="$cut" TMPDIR=/host/kept
mkdir -p "$TMPDIR"
./tarn.test -test.run '^TestZFSPowerCut$' -test.timeout 10m
zpool scrub -w cut
healthy
BOOT

boot() { # number, command that cuts the power
  bash "$vm" --keep "$work/state" --disk-cache volatile --timeout "$timeout" \
    "$work/host" bash boot.sh "$1" "$sync" "$2" >"$work/out" 2>&1
}

failed=
for ((n = 1; n <= cuts + 1; n++)); do
  command=vm-power-cut
  [ "$n" -le "$cuts" ] || command=
  boot "$n" "$command" || failed=$n
  grep -v '^PASS$' "$work/out" || true
  # A boot that was cut has not come to an end; one that was not has.
  if grep -q '^--- FAIL\|^FAIL' "$work/out" || { [ -n "$command" ] && ! grep -q "^boot $n: " "$work/out"; }; then failed=$n; fi
  [ -z "$failed" ] || break
done

if [ "$sync" = disabled ]; then
  if [ -n "$failed" ]; then
    echo "control: with sync=disabled boot $failed has found the loss, as it must"
    rm -rf "$work"
    exit 0
  fi
  echo "control: sync=disabled has lost nothing in $cuts cuts: this test finds nothing" >&2
  exit 1
fi
if [ -n "$failed" ]; then
  echo "boot $failed failed; its output, the pool's disk and the journal are in $work" >&2
  exit 1
fi
echo "power cuts: $cuts; nothing that was acknowledged is lost, every check is clean"
rm -rf "$work"

#!/usr/bin/env bash
# Runs the tests on real ZFS in a virtual machine: all TestZFS… of the packages given.
#
#   test-zfs.sh PATTERN PACKAGE...     PATTERN is a part of the tests' names, or ''
#
# GO, VM (the script that runs a command in a machine) and VM_TIMEOUT (seconds) can be set;
# TARN_SNAPSHOTS is passed on.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
go=${GO:-go}
pattern=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-test-zfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # other users than root run the binaries, too
cd "$here/../.."
for package in $("$go" list -tags zfs -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@"); do
  CGO_ENABLED=0 "$go" test -c -tags zfs -o "$work/$(basename "$package").test" "$package"
done
cat >"$work/run" <<'RUN'
export TARN_TEST_CLOCK=1 TARN_TEST_DISK=/dev/vdb # both are nobody else's here
# Pools are sparse files, and the system's own disk has room for less than one of them.
mkfs.ext4 -q /dev/vdc && mount /dev/vdc /var/tmp && chmod 1777 /var/tmp || exit
failed=0
for binary in ./*.test; do
  echo "== $binary"
  TMPDIR=/var/tmp "$binary" -test.v -test.timeout 2h -test.run "TestZFS.*$1" || failed=1
done
exit $failed
RUN
bash "${VM:-$here/run.sh}" --timeout "${VM_TIMEOUT:-7200}" --disk 2 --disk-size 8G "$work" \
  env TARN_SNAPSHOTS="${TARN_SNAPSHOTS:-}" bash run "$pattern"

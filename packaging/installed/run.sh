#!/usr/bin/env bash
# Tests the package as it is installed: each test is a virtual machine with systemd and ZFS.
#
#   run.sh [TEST...]     all by default: install upgrade purge permissions security reload
#                        timers watchdog reboot
#
# DEB is the package (the newest in dist/), CUTS how often the power is cut (3), RESTARTS and
# UPGRADES how many of them are made under load (50 and 10). GO, VM (the script that runs a
# command in a machine) and VM_TIMEOUT (seconds for one boot) can be set.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
vm=${VM:-$here/../vm/run.sh}
go=${GO:-go}
deb=${DEB:-$(ls -t "$root"/dist/tarn_*_amd64.deb 2>/dev/null | head -n 1)}
[ -n "$deb" ] || { echo "run.sh: there is no package; run make packages" >&2; exit 2; }
[ $# -gt 0 ] || set -- install upgrade purge permissions security reload timers watchdog reboot
for test; do [ -e "$here/guest/$test.sh" ] || { echo "run.sh: there is no test $test" >&2; exit 2; }; done

work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-installed.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/host"
chmod 755 "$work" "$work/host" # other users than root run programs there, too
build() { CGO_ENABLED=0 GOARCH=amd64 "$go" build -trimpath -ldflags '-s -w' -o "$1" "$2"; }
(cd "$here" && build "$work/host/client" ./client && build "$work/host/probe" ./probe &&
  build "$work/host/etcdctl" go.etcd.io/etcd/etcdctl/v3)
cp "$here"/guest/*.sh "$work/host/"
cp "$deb" "$work/host/tarn.deb"

# The next version: another program in a package that is otherwise the same.
next() {
  local version=99.0.0
  sed "s/^const tarnVersion = .*/const tarnVersion = \"$version\"/" "$root/cmd/tarn/version.go" >"$work/version.go"
  printf '{"Replace": {"%s": "%s"}}' "$root/cmd/tarn/version.go" "$work/version.go" >"$work/overlay"
  dpkg-deb --raw-extract "$deb" "$work/next"
  GO=$go GOARCH=amd64 GOFLAGS="${GOFLAGS:-} -overlay=$work/overlay" "$root/packaging/binary.sh" "$work/next/usr/bin/tarn"
  sed -i "s/^Version: .*/Version: $version-1/" "$work/next/DEBIAN/control"
  (cd "$work/next" && md5sum $(cut -c35- DEBIAN/md5sums) >"$work/md5sums" && mv "$work/md5sums" DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Znone --build "$work/next" "$work/host/tarn-next.deb" >/dev/null
}
next

boot() { # test, flags of the machine
  local test=$1
  shift
  bash "$vm" --timeout "${VM_TIMEOUT:-3600}" --env RESTARTS="${RESTARTS:-50}" --env UPGRADES="${UPGRADES:-10}" "$@" "$work/host" bash "$test.sh"
}

reboot() {
  local cut flags=(--keep "$work/state" --keep-root --disk-cache volatile)
  boot reboot "${flags[@]}" --env STEP=install || return
  for ((cut = 1; cut <= ${CUTS:-3}; cut++)); do
    echo "-- boot $cut, to be cut"
    # One that was not cut ends by itself, with what it found.
    boot reboot "${flags[@]}" --env STEP=load | tee "$work/out" || return
    ! grep -q '^FAILED' "$work/out" || return 1
  done
  echo "-- the last boot"
  boot reboot "${flags[@]}" --env STEP=check
}

failed=()
for test; do
  echo "== $test"
  case $test in
    reboot) reboot || failed+=("$test") ;;
    timers) boot "$test" --disk 2 || failed+=("$test") ;;
    *) boot "$test" || failed+=("$test") ;;
  esac
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
echo "all of these passed: $*"

#!/usr/bin/env bash
# Run in the machine by zfs.sh, beside the programs tarn and kubelettest: lays out a node of k3s,
# without k3s, on datasets of one kind after the other. In each case the kubelet's code is held against
# tarn kubelet check, with the thresholds of k3s and with those that tarn kubelet config writes.
#
#   zfs-cases.sh [CASE...]
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kubelet=/var/lib/kubelet data=/var/lib/rancher/k3s
containerd=$data/agent/containerd
images=$containerd/io.containerd.snapshotter.v1.overlayfs
dropins=$data/agent/etc/kubelet.conf.d
unit=/etc/systemd/system/k3s.service
failed=()

# --- the node ----------------------------------------------------------------
k3s() {
  mkdir -p /etc/rancher/k3s $unit.d
  printf '#!/bin/sh\necho "k3s version v1.37.2+k3s1 (abc)"\n' >/usr/local/bin/k3s
  chmod 755 /usr/local/bin/k3s
  printf '[Unit]\nAfter=network-online.target\n[Service]\nType=notify\nExecStart=/usr/local/bin/k3s server\n' >$unit
}

# What k3s writes at each start, and what kubelet and containerd make.
started() {
  mkdir -p $dropins $kubelet "$images"
  chmod 700 $dropins
  cat >$dropins/00-k3s-defaults.conf <<'CONF'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard:
  imagefs.available: 5%
  nodefs.available: 5%
evictionMinimumReclaim:
  imagefs.available: 10%
  nodefs.available: 10%
CONF
}

make() { zfs create -p "$@"; }
write() { mkdir -p "${1%/*}" && dd if=/dev/urandom of="$1" bs=1M count="$2" status=none; }

clean() {
  rm -rf $unit.d/* /etc/rancher/k3s/* /opt/node
  umount -q $kubelet $images $containerd $data /srv/data 2>/dev/null
  zfs list -H -o name -d 1 tank | tail -n +2 | while read -r dataset; do zfs destroy -R "$dataset"; done
  rm -rf $kubelet /var/lib/rancher /var/lib/containerd /srv/data
}

# --- a case ------------------------------------------------------------------
compare() { # compare ARGUMENT...: what kubelettest prints is in $said
  local status
  said=$("$here/kubelettest" -brief -tarn "$here/tarn" "$@" 2>&1)
  status=$?
  echo "$said"
  [ $status = 0 ]
}

settle() { [ ! -e /dev/zfs ] || zpool sync; }

expect() { # expect PATTERN...: each is in $said
  local pattern ok=0
  for pattern; do grep -qE -e "$pattern" <<<"$said" || { echo "NOT SAID: $pattern"; ok=1; }; done
  return $ok
}

# Compares with the thresholds of k3s; the arguments are what must be seen.
before() { settle; compare || bad=1; expect "$@" || bad=1; }

# The same with the thresholds that are written, which the kubelet decodes strictly.
after() {
  local out
  out=$("$here/tarn" kubelet config --write 2>&1) || { echo "$out"; echo "tarn kubelet config --write failed"; bad=1; return; }
  [ "$(stat -c %a $dropins/90-tarn-zfs.conf)" = 600 ] || { echo "the mode is not 0600"; bad=1; }
  settle
  echo "- as written: $(grep -E '^  .*(available|Free)' $dropins/90-tarn-zfs.conf | sed 's/ *#.*//; s/^ *//' | paste -sd ' ')"
  compare -config $dropins/90-tarn-zfs.conf || bad=1
  expect "$@" || bad=1
  "$here/tarn" kubelet config --undo --write >/dev/null && [ ! -e $dropins/90-tarn-zfs.conf ] || { echo "not undone"; bad=1; }
}

# Nothing is written, and why is said.
refused() {
  said=$("$here/tarn" kubelet config --write 2>&1)
  [ $? = 4 ] || { echo "not refused:"; echo "$said"; bad=1; }
  expect "$@" || bad=1
  [ ! -e $dropins/90-tarn-zfs.conf ] || { echo "written all the same"; bad=1; }
}

two_datasets() { make -o mountpoint=$kubelet tank/kubelet && make -o mountpoint=$data tank/k3s && started; }
lines='lines in a pass map.containerfs.inodesFree:2.'
calm="pressure false, $lines, two devices true"

case_two_datasets() {
  two_datasets
  before "nodefs .* on tank/kubelet: .* nil nil" "imagefs .* on tank/k3s: " "$calm"
  after "$calm"
}

case_one_dataset() {
  make -o mountpoint=$data tank/k3s
  started
  echo 'kubelet-arg: ["root-dir='$data'/agent/kubelet"]' >/etc/rancher/k3s/config.yaml
  mkdir -p $data/agent/kubelet
  before "nodefs +$data/agent/kubelet on tank/k3s" "pressure false, $lines, two devices false"
  after "two devices false"
}

case_quota() {
  make -o quota=20G -o mountpoint=none tank/node
  make -o mountpoint=$kubelet tank/node/kubelet && make -o mountpoint=$data -o refquota=12G tank/node/k3s && started
  write $kubelet/pods/data 40 && write "$images/layer" 60
  before "imagefs .* on tank/node/k3s: .*: 1[23]0*[0-9]* " "$calm"
  after "$calm"
}

case_children() { # 30 GiB below, 8 GiB free: a reservation is used by the dataset above
  two_datasets
  write "$images/layer" 40
  make -o reservation=30G tank/k3s/other
  before "pressure false"
  after "$calm"
}

case_capacity_bug() {
  two_datasets
  make -o reservation=37500M tank/k3s/other
  before "imagefs.available .* below 2055[0-9]{6}\$" "pressure true"
  refused "available|room|free"
}

case_fires() { # a percentage fires where it is foretold, which is not where it is computed to be now
  make -o mountpoint=$kubelet tank/kubelet && make -o quota=600M -o mountpoint=$data tank/k3s && started
  before "pressure false"
  local at available
  at=$(sed -n 's/^imagefs.available *is to fire at \([0-9]*\) .*/\1/p' <<<"$said")
  available=$(zfs get -Hpo value available tank/k3s)
  write "$images/most" $(((available - at) / 1048576 - 4))
  before "pressure false"
  write "$images/rest" 8
  before "pressure true"
}

case_snapshots() {
  two_datasets
  local i
  for i in $(seq 40); do write "$images/layer" 4 && write $kubelet/data 2 && zfs snapshot tank/k3s@auto-"$i" tank/kubelet@auto-"$i"; done
  before "$calm"
  after "$calm"
}

case_reservation() {
  two_datasets
  zfs set reservation=6G refreservation=5G tank/k3s && zfs set refreservation=4G tank/kubelet && make -o reservation=3G tank/sibling
  before "$calm"
  after "$calm"
}

case_ext4() {
  two_datasets
  mkdir -p $containerd && mount /dev/disk/by-id/virtio-zd1 $containerd && mkdir -p "$images"
  before "imagefs .* on /dev/vd[a-z]: capacity.* [0-9]+ [0-9]+ [0-9]+ [0-9]+\$" "pressure false, lines in a pass map.., two"
  after "two devices true"
}

case_zvol() {
  make -o mountpoint=$kubelet tank/kubelet && make -o mountpoint=$data tank/k3s && zfs create -s -V 12G tank/images
  udevadm settle
  mkfs.ext4 -q /dev/zvol/tank/images && mkdir -p $containerd && mount /dev/zvol/tank/images $containerd && started
  before "imagefs .* on /dev/zd[0-9]+: "
  after "two devices true"
}

case_legacy() {
  make -o mountpoint=legacy tank/kubelet && make -o mountpoint=legacy tank/k3s
  mkdir -p $kubelet $data && mount -t zfs tank/kubelet $kubelet && mount -t zfs tank/k3s $data && started
  before "nodefs .* on tank/kubelet: " "$calm"
  after "$calm"
}

case_bind() { # the first mount of a dataset is elsewhere
  make -o mountpoint=/srv/data tank/data
  mkdir -p /srv/data/kubelet /srv/data/k3s $kubelet $data
  mount --bind /srv/data/kubelet $kubelet && mount --bind /srv/data/k3s $data && started
  before "nodefs .* on tank/data: " "two devices false"
  after "two devices false"
}

case_space_in_name() {
  make -o mountpoint=$kubelet "tank/my kubelet" && make -o mountpoint=$data tank/k3s && started
  before
}

case_encrypted() {
  head -c 32 /dev/urandom >/run/key
  make -o encryption=on -o keyformat=raw -o keylocation=file:///run/key -o mountpoint=none tank/secret
  make -o mountpoint=$kubelet tank/secret/kubelet && make -o mountpoint=$data tank/secret/k3s && started
  write "$images/layer" 20
  before "imagefs .* on tank/secret/k3s: " "$calm"
  after "$calm"
}

case_snapshotter_zfs() { # a dataset and a clone for each layer, as containerd makes them
  two_datasets
  rmdir "$images"
  echo 'snapshotter: zfs' >/etc/rancher/k3s/config.yaml
  make -o mountpoint=${images%overlayfs}zfs tank/k3s/layers
  local n
  make -o mountpoint=legacy tank/k3s/layers/1 && zfs snapshot tank/k3s/layers/1@snapshot
  for n in 2 3 4; do
    zfs clone -o mountpoint=legacy tank/k3s/layers/$((n - 1))@snapshot tank/k3s/layers/$n && mkdir -p /run/layer$n && mount -t zfs tank/k3s/layers/$n /run/layer$n
    write /run/layer$n/data 15 && zfs snapshot tank/k3s/layers/$n@snapshot
  done
  before "imagefs .* on tank/k3s/layers: " "$calm"
  after "$calm"
  umount /run/layer[234]
}

case_no_zfs_in_path() {
  two_datasets
  mkdir -p /opt/node
  printf '[Service]\nEnvironment=PATH=/opt/node\n' >$unit.d/path.conf
  before "nodefs .*cannot find filesystem info for device"
  said=$("$here/tarn" kubelet check)
  expect "does not start" "zfs is not in the PATH"|| bad=1
}

case_zfs_fails() { # what the kubelet finds under this name fails
  two_datasets
  mkdir -p /opt/node
  printf '#!/bin/sh\necho no >&2\nexit 1\n' >/opt/node/zfs && chmod 755 /opt/node/zfs
  printf '[Service]\nEnvironment=PATH=/opt/node:/usr/bin\n' >$unit.d/path.conf
  before "nodefs .*cannot find filesystem info for device"
}

case_no_dev_zfs() {
  two_datasets
  mv /dev/zfs /dev/zfs.away
  before "nodefs .* [0-9]+ [0-9]+ [0-9]+ [0-9]+\$" "pressure false, lines in a pass map.., two"
  after "lines in a pass map.., two"
  mv /dev/zfs.away /dev/zfs
}

case_full() {
  make -o mountpoint=$kubelet -o refquota=1G tank/kubelet && make -o mountpoint=$data -o quota=100M tank/k3s && started
  write "$images/layer" 90
  dd if=/dev/urandom of="$images/rest" bs=64k count=400 status=none 2>/dev/null
  before "pressure true"
  refused "available|room|free"
}

case_kubeadm() {
  make -o mountpoint=$kubelet tank/kubelet && make -o mountpoint=/var/lib/containerd tank/containerd
  mkdir -p /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs
  rm -rf /usr/local/bin/k3s $unit $unit.d /etc/rancher /var/lib/rancher
  printf '#!/bin/sh\necho "Kubernetes v1.37.2"\n' >/usr/local/bin/kubelet && chmod 755 /usr/local/bin/kubelet
  printf '[Service]\nExecStart=/usr/local/bin/kubelet --config=%s/config.yaml --config-dir=/etc/kubernetes/kubelet.conf.d\n' $kubelet >/etc/systemd/system/kubelet.service
  printf 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n' >$kubelet/config.yaml
  mkdir -p /etc/kubernetes/kubelet.conf.d
  dropins=/etc/kubernetes/kubelet.conf.d
  before "imagefs .* on tank/containerd: " "nodefs.inodesFree:1" "imagefs.inodesFree:1"
  after "$calm"
}

# --- all of them -------------------------------------------------------------
[ -e /usr/local/bin/k3s ] && { echo 'there is a k3s on this machine'; exit 1; }
zpool create -O mountpoint=none -O compression=off tank /dev/disk/by-id/virtio-zd0 && mkfs.ext4 -q -F /dev/disk/by-id/virtio-zd1 || exit
cases=("$@")
[ $# -gt 0 ] || mapfile -t cases < <(sed -n 's/^case_\([a-z0-9_]*\)() .*/\1/p' "${BASH_SOURCE[0]}")
for name in "${cases[@]}"; do
  echo "== $name"
  bad=0
  k3s
  "case_$name"
  [ $bad = 0 ] || { echo "-- FAILED: $name"; failed+=("$name"); }
  clean
done
echo "== ${#cases[@]} cases, ${#failed[@]} failed: ${failed[*]}"
[ ${#failed[@]} = 0 ]

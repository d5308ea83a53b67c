#!/usr/bin/env bash
# Builds the image of the virtual machine in which the tests on real ZFS run: Debian with its
# stock cloud kernel, systemd and OpenZFS, from Debian's packages alone. The result, kernel,
# initrd and root.img, is kept in the cache and made again when this script or guest/ change.
#
#   image.sh            build it if it is not there
#   image.sh --rebuild  build it again, the module of ZFS too
#
# TARN_VM_CACHE    where it is kept (~/.cache/tarn-vm)
# TARN_VM_SUITE    Debian release of the guest (trixie)
# TARN_VM_PACKAGES further packages for the guest, separated by commas
#
# Needs root and Debian or one of its children; what is missing here is installed with apt-get.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TARN_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn-vm}
suite=${TARN_VM_SUITE:-trixie}
more=${TARN_VM_PACKAGES:-}

say() { echo "image: $*" >&2; }
die() { say "$*"; exit 1; }

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ "${1:-}" = --rebuild ]; then rm -rf "$cache/image" "$cache/modules"; fi
recipe=$(cat "$here/image.sh" "$here"/guest/* <(echo "$suite $more") | sha256sum | cut -d' ' -f1)
if [ "$(cat "$cache/image/recipe" 2>/dev/null)" = "$recipe" ]; then exit 0; fi
[ "$(id -u)" = 0 ] || die "building needs root (chroot, apt-get)"

# --- tools of this machine ---------------------------------------------------
declare -A package=([qemu-system-x86_64]=qemu-system-x86 [mmdebstrap]=mmdebstrap [mke2fs]=e2fsprogs [unxz]=xz-utils [nbdkit]=nbdkit)
missing=()
for tool in "${!package[@]}"; do command -v "$tool" >/dev/null || missing+=("${package[$tool]}"); done
# A part of QEMU's package once, and later a package of its own.
[ -x /usr/lib/qemu/virtiofsd ] || [ -x /usr/libexec/virtiofsd ] || [[ " ${missing[*]} " == *" qemu-system-x86 "* ]] || missing+=(virtiofsd)
if [ ${#missing[@]} -gt 0 ]; then
  say "installing here: ${missing[*]}"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 ||
    { tail -n 20 "$cache/apt.log" >&2; die "apt-get failed"; }
fi
mirror=$(apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "main" && $2 !~ /security/ { print $2; exit }')
[ -n "$mirror" ] || die "apt-get knows no mirror here; run apt-get update"

work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM

# Mounts are made in a name space of their own: removing $work can reach nothing else.
apart() { unshare --mount --propagation private "$@"; }

install_system() { # folder, packages, further arguments of mmdebstrap
  local dir=$1 packages=$2
  shift 2
  apart mmdebstrap --mode=root --variant=minbase --components=main,contrib --include="$packages" \
    --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$@" "$suite" "$dir" "$mirror" >"$dir.log" 2>&1 ||
    { tail -n 30 "$dir.log" >&2; die "mmdebstrap failed"; }
}

# --- kernel and module -------------------------------------------------------
# In a system of its own, since the guest needs no compiler. The module is compiled without
# debugging information, which would take half of the time.
modules=$cache/modules/$suite
if [ ! -e "$modules/done" ]; then
  say "installing the compiler and the kernel ($suite)"
  builder=$work/builder
  install_system "$builder" linux-image-cloud-amd64,linux-headers-cloud-amd64,gcc,make,gawk,libc6-dev,file,initramfs-tools,busybox \
    --essential-hook="mkdir -p \"\$1/etc/initramfs-tools/conf.d\" && cp '$here/guest/initramfs.conf' \"\$1/etc/initramfs-tools/conf.d/tarn-vm\"" \
    --essential-hook="cp '$here/guest/initramfs.modules' \"\$1/etc/initramfs-tools/modules\"" \
    --customize-hook='chroot "$1" sh -c "cd /tmp && apt-get -q download zfs-dkms && dpkg-deb -x zfs-dkms_*.deb /"'
  kernel=$(basename "$builder"/boot/vmlinuz-*)
  kernel=${kernel#vmlinuz-}
  source=$(basename "$builder"/usr/src/zfs-*)
  made=$cache/modules/$kernel-$source
  if [ ! -e "$made/zfs.ko" ]; then
    say "compiling the module of ZFS for $kernel: 7 minutes of processor time"
    cat >"$builder/compile.sh" <<COMPILE
set -e
cd /usr/src/$source
rm -f /usr/src/linux-headers-$kernel/vmlinux # type information of the kernel, which nothing here reads
export KCFLAGS=-g0
./configure --disable-dependency-tracking --with-config=kernel \
  --with-linux=/usr/src/linux-headers-${kernel%-cloud-amd64}-common --with-linux-obj=/usr/src/linux-headers-$kernel
make -j\$(nproc)
strip --strip-debug module/*.ko
COMPILE
    apart sh -c 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$1" env -i PATH="$PATH" LC_ALL=C sh /compile.sh' \
      sh "$builder" >"$cache/compile.log" 2>&1 || { tail -n 30 "$cache/compile.log" >&2; die "the module did not compile, see $cache/compile.log"; }
    mkdir -p "$made.new"
    cp "$builder/usr/src/$source"/module/*.ko "$made.new/"
    rm -rf "$made"
    mv "$made.new" "$made"
  fi
  rm -rf "$modules"
  mkdir -p "$modules"
  tree=$builder/usr/lib/modules/$kernel
  rm -f "$tree/build" "$tree/source"
  mkdir -p "$tree/extra"
  cp "$made"/*.ko "$tree/extra/"
  cp -a "$tree" "$modules/$kernel"
  cp "$builder/boot/vmlinuz-$kernel" "$modules/kernel"
  cp "$builder/boot/initrd.img-$kernel" "$modules/initrd"
  rm -rf --one-file-system "$builder"
  echo "$kernel" >"$modules/done"
fi
kernel=$(cat "$modules/done")

# --- the guest ---------------------------------------------------------------
say "installing the guest ($suite, kernel $kernel)"
root=$work/root
install_system "$root" "systemd-sysv,dbus,udev,kmod,zfsutils-linux,dmsetup,e2fsprogs,iproute2,procps,openssh-client,strace${more:+,$more}"
mkdir -p "$root/usr/lib/modules"
cp -a "$modules/$kernel" "$root/usr/lib/modules/"
apart chroot "$root" depmod "$kernel"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
mkdir -p "$root/host" "$root/usr/local/lib"
echo tarn-vm >"$root/etc/hostname"
echo '127.0.0.1 localhost tarn-vm' >"$root/etc/hosts"
: >"$root/etc/fstab"
# Fixed: a pool that was kept is imported without force at the next boot.
printf 'tarn' >"$root/etc/hostid"
install -m 755 "$here/guest/session" "$root/usr/local/lib/tarn-vm-session"
install -m 755 "$here/guest/vm-power-cut" "$root/usr/local/bin/vm-power-cut"
install -m 644 "$here/guest/tarn-vm.service" "$root/etc/systemd/system/tarn-vm.service"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../tarn-vm.service "$root/etc/systemd/system/multi-user.target.wants/tarn-vm.service"
# What a test has no use for, and an emulated boot would wait for.
for unit in getty.target getty-static.service serial-getty@.service systemd-logind.service systemd-firstboot.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service \
  systemd-tpm2-setup.service systemd-tpm2-setup-early.service systemd-binfmt.service systemd-pstore.service systemd-random-seed.service \
  systemd-update-utmp.service systemd-user-sessions.service systemd-journal-flush.service systemd-machine-id-commit.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/tarn-vm.conf"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
touch "$root/etc/.updated" "$root/var/.updated" # no catalogues to bring up to date at the first boot

out=$work/image
mkdir "$out"
cp "$modules/kernel" "$modules/initrd" "$out/"
truncate -s 2G "$out/root.img"
mke2fs -q -F -t ext4 -L tarn-vm -m 0 -d "$root" "$out/root.img"
chroot "$root" dpkg-query -W >"$out/packages"
echo "$recipe" >"$out/recipe"
rm -rf "$cache/image"
mv "$out" "$cache/image"
say "ready: $cache/image, $(du -sm "$cache/image" | cut -f1) MB"

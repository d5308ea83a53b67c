#!/usr/bin/env bash
# Runs a command as root in a throw-away virtual machine with systemd and OpenZFS.
#
#   run.sh [flag...] DIR COMMAND [ARGUMENT...]
#
# DIR is /host in the guest, for reading and writing, and the command starts there. What it
# prints is printed here, and its exit status is this script's. Empty disks for pools are
# /dev/disk/by-id/virtio-zd0, -zd1 and so on.
#
#   --disk N             number of disks (1)
#   --disk-size SIZE     of each, as truncate takes it (2G); only what is written takes space
#   --disk-cache MODE    writeback: what the guest flushes is synced here (default)
#                        volatile: a power cut takes what the guest has not flushed
#   --keep DIR           the disks are files there, and stay; the guest is shut down in
#                        order after the command, unless its power is cut
#   --keep-root          with --keep: the system's own disk stays as well
#   --power-cut          cut the power when the command has ended
#   --power-cut-after S  cut it S seconds after the command was begun. In the guest
#                        vm-power-cut does it. A run that was cut ends with status 0
#   --timeout S          end the machine after S seconds (600), with status 124
#   --env NAME=VALUE     for the command; can be repeated
#   --memory MIB         (2048)
#   --cpus N             (2)
#   --accel kvm|tcg      how to run it; default: KVM if a trial has shown that it works here
#   --console FILE       keep what the kernel prints
#
# Status 125: there was no machine, or it ended before the command.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TARN_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tarn-vm}
fail() { echo "run.sh: $*" >&2; exit 125; }

disks=1 size=2G mode=writeback keep='' keep_root='' cut='' cut_after='' limit=600
memory=2048 cpus=2 accel='' console='' vars=()
while [ $# -gt 0 ]; do
  case $1 in
    --keep-root | --power-cut) ;;
    --*) [ $# -ge 2 ] || fail "$1 needs a value" ;;
  esac
  case $1 in
    --disk) disks=$2 ;;
    --disk-size) size=$2 ;;
    --disk-cache) mode=$2 ;;
    --keep) keep=$2 ;;
    --keep-root) keep_root=1 ;;
    --power-cut) cut=1 ;;
    --power-cut-after) cut_after=$2 ;;
    --timeout) limit=$2 ;;
    --env) vars+=("$2") ;;
    --memory) memory=$2 ;;
    --cpus) cpus=$2 ;;
    --accel) accel=$2 ;;
    --console) console=$2 ;;
    -h | --help) sed -n '2,/^# Status/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) fail "there is no flag $1; run.sh --help lists them" ;;
    *) break ;;
  esac
  case $1 in --keep-root | --power-cut) shift ;; *) shift 2 ;; esac
done
[ $# -ge 2 ] || fail "give a directory and a command; run.sh --help says more"
share=$(cd "$1" 2>/dev/null && pwd) || fail "there is no directory $1"
shift
[ "$mode" = writeback ] || [ "$mode" = volatile ] || fail "--disk-cache is writeback or volatile"
[ -z "$keep_root" ] || [ -n "$keep" ] || fail "--keep-root needs --keep"

bash "$here/image.sh" || fail "there is no image"
image=$cache/image

# KVM can be there and not work, as in some nested machines: a trial tells, once.
if [ -z "$accel" ]; then
  if [ ! -e "$cache/accel" ]; then
    how=tcg
    if [ -w /dev/kvm ] && bash "${BASH_SOURCE[0]}" --accel kvm --timeout 60 "$here" true >/dev/null 2>&1; then how=kvm; fi
    echo "$how" >"$cache/accel"
  fi
  accel=$(cat "$cache/accel")
fi
case $accel in
  kvm) machine=(-accel kvm -cpu host) ;;
  tcg) machine=(-accel tcg,thread=multi,tb-size=512 -cpu qemu64) ;;
  *) fail "--accel is kvm or tcg" ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/tarn-vm.XXXXXX")
children=() stores=() qemu=
cleanup() {
  local pid
  for pid in "${children[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
attached=(setpriv --pdeathsig KILL) # nothing outlives this script
wait_for() { for _ in $(seq 500); do [ -S "$1" ] && return; sleep 0.02; done; fail "$2 did not start: $(tail -n 3 "$3")"; }

# --- disks -------------------------------------------------------------------
state=$work
if [ -n "$keep" ]; then mkdir -p "$keep"; state=$(cd "$keep" && pwd); fi
drives=()
for ((n = 0; n < disks; n++)); do
  file=$state/zd$n.raw
  [ -e "$file" ] || truncate -s "$size" "$file"
  drive="if=none,id=zd$n,format=raw,discard=unmap"
  if [ "$mode" = volatile ]; then
    # Writes stay in nbdkit until the guest flushes them, and go with it when it is killed.
    TMPDIR=$work "${attached[@]}" nbdkit --foreground --unix "$work/zd$n.sock" --filter=cache file "$file" cache=writeback \
      </dev/null >"$work/zd$n.log" 2>&1 &
    children+=($!) stores+=($!)
    wait_for "$work/zd$n.sock" nbdkit "$work/zd$n.log"
    drive+=",file.driver=nbd,file.server.type=unix,file.server.path=$work/zd$n.sock"
  else
    drive+=",file=$file,cache=writeback"
  fi
  drives+=(-drive "$drive" -device "virtio-blk-pci,drive=zd$n,serial=zd$n")
done
if [ -n "$keep_root" ]; then
  [ -e "$state/root.img" ] || cp --sparse=always "$image/root.img" "$state/root.img"
  system="file=$state/root.img,cache=writeback"
else
  system="file=$image/root.img,snapshot=on,cache=unsafe"
fi

# --- the machine -------------------------------------------------------------
{
  for v in "${vars[@]}"; do printf 'export %s=%q\n' "${v%%=*}" "${v#*=}"; done
  printf 'exec'; printf ' %q' "$@"; echo
} >"$work/command"
after=wait
if [ -n "$keep" ] && [ -z "$cut$cut_after" ]; then after=poweroff; fi
printf %s "$after" >"$work/after"
mkfifo "$work/output" "$work/control"
cat <"$work/output" &
printer=$!
exec 8<>"$work/control"

virtiofsd=/usr/lib/qemu/virtiofsd
[ -x $virtiofsd ] || virtiofsd=/usr/libexec/virtiofsd
"${attached[@]}" "$virtiofsd" --socket-path="$work/host.sock" -o source="$share" -o cache=auto </dev/null >"$work/host.log" 2>&1 &
children+=($!)
wait_for "$work/host.sock" virtiofsd "$work/host.log"

TMPDIR=$work "${attached[@]}" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -nic none \
  "${machine[@]}" -machine q35,memory-backend=ram -object "memory-backend-memfd,id=ram,size=${memory}M,share=on" -m "$memory" -smp "$cpus" \
  -kernel "$image/kernel" -initrd "$image/initrd" \
  -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off systemd.show_status=error net.ifnames=0" \
  -chardev "file,id=console,path=$work/console" -serial chardev:console \
  -drive "if=none,id=system,format=raw,$system" -device virtio-blk-pci,drive=system "${drives[@]}" \
  -device virtio-rng-pci -device virtio-serial-pci \
  -chardev "file,id=output,path=$work/output" -device virtserialport,chardev=output,name=output \
  -chardev "file,id=control,path=$work/control" -device virtserialport,chardev=control,name=control \
  -chardev "socket,id=host,path=$work/host.sock" -device vhost-user-fs-pci,chardev=host,tag=host \
  -fw_cfg "name=opt/tarn/command,file=$work/command" -fw_cfg "name=opt/tarn/after,file=$work/after" \
  8>&- </dev/null >"$work/qemu.log" 2>&1 &
qemu=$!
children+=("$qemu")

pull_plug() { # QEMU is stopped first: the guest must not see the disks go
  kill -STOP "$qemu" 2>/dev/null || true
  local pid
  for pid in "${stores[@]}" "$qemu"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait "$qemu" 2>/dev/null || true
}

# --- until it ends -----------------------------------------------------------
deadline=$((SECONDS + limit)) plug=0 status='' line='' rest=''
while [ -z "$status" ]; do
  if [ "$SECONDS" -ge "$deadline" ]; then
    status=124
    echo "run.sh: ended after $limit s" >&2
  elif [ "$plug" -gt 0 ] && [ "$SECONDS" -ge "$plug" ]; then
    status=0
  elif IFS= read -r -t 0.5 line <&8; then
    line=$rest$line rest=''
    case $line in
      begin) [ -z "$cut_after" ] || plug=$((SECONDS + cut_after)) ;;
      cut) status=0 ;;
      'end '*) status=${line#end } ;;
      'stop '*)
        status=${line#stop }
        while kill -0 "$qemu" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.1; done
        ;;
    esac
  else
    rest+=$line # a piece of a line
    kill -0 "$qemu" 2>/dev/null || { status=125; echo "run.sh: the machine ended before the command" >&2; }
  fi
done
pull_plug
wait "$printer" 2>/dev/null || true
[ -z "$console" ] || cp "$work/console" "$console"
case $status in 124 | 125) tail -n 20 "$work/qemu.log" "$work/console" >&2 2>/dev/null || true ;; esac
exit "$status"

# A disk that is only slow is waited for; one that has stopped leads to a restart, with the
# reason in the journal, and the server goes on by itself when the disk does.
#
# SLOW is how long the slow disk takes for a write, in ms; FROZEN for how many seconds the disk
# stays away after systemd has acted.
. ./lib.sh
modprobe dm-delay
device=$(readlink -f /dev/disk/by-id/virtio-zd0)
sectors=$(blockdev --getsz "$device")
# disk TARGET...: what is below the pool from now on.
disk() { echo "0 $sectors $*" | dmsetup load disk && dmsetup suspend "${suspend[@]}" disk && dmsetup resume disk; }
suspend=()
echo "0 $sectors linear $device 0" | dmsetup create disk || exit
installed tarn.deb /dev/mapper/disk
ok "first request" etcdctl put key value
limit=60
same "limit of the watchdog" 1min "$(property tarn.service WatchdogUSec)"
main() { property tarn.service MainPID; }
first=$(main)
load_begins -killed -writers 2 -readers 1 -watches 10 -limit 20m

# Slow for longer than the limit.
disk delay "$device" 0 0 "$device" 0 "${SLOW:-400}" "$device" 0 "${SLOW:-400}"
begin=$(wc -l </run/acknowledged)
sleep $((limit * 3 / 2))
say "writes acknowledged by a disk that takes ${SLOW:-400} ms for each write, in $((limit * 3 / 2)) s: $(($(wc -l </run/acknowledged) - begin))"
same "process after a time with a slow disk" "$first" "$(main)"
same "restarts" 0 "$(property tarn.service NRestarts)"
ok "the watchdog is silent" not logged tarn.service 'watchdog is not fed'
disk linear "$device" 0

# stopped HOW: what happens while the disk does not answer, and what when it does again.
stopped() {
  local how=$1 begin=$SECONDS pid since
  pid=$(main)
  since=$(date '+%Y-%m-%d %H:%M:%S')
  noted() { journalctl --boot --no-pager --output cat --unit tarn.service --since "$since" --grep "$1" --quiet; }
  within "$how: the journal has the reason" $((limit + 300)) noted 'watchdog is not fed'
  say "after $((SECONDS - begin)) s: $(noted 'watchdog is not fed' | tail -n 1)"
  say "status: $(property tarn.service StatusText)"
  within "$how: systemd acts" $((limit + 300)) noted 'Watchdog timeout'
  say "after $((SECONDS - begin)) s: $(noted 'Watchdog timeout' | tail -n 1)"
  sleep "${FROZEN:-20}"
  say "${FROZEN:-20} s later: $(property tarn.service ActiveState)/$(property tarn.service SubState), main process $(main)"
  say "threads of the old process: $(cat /proc/"$pid"/task/*/stat 2>/dev/null | sed 's/.*) //' | cut -c1 | sort | uniq -c | tr -s ' \n' ' ')"
  same "$how: socket" active "$(active tarn.socket)"
  again
  begin=$SECONDS
  within "$how: it answers again by itself" 600 etcdctl get key
  say "$((SECONDS - begin)) s after the disk was there again; restarts so far: $(property tarn.service NRestarts)"
  ok "$how: another process serves" test "$(main)" != "$pid"
}
again() { dmsetup resume disk; }
dmsetup suspend --nolockfs disk
stopped "a disk that stopped"

# A pool that ZFS has suspended, since its disk gives errors.
again() {
  disk linear "$device" 0
  zpool clear tank
}
suspend=(--noflush --nolockfs)
disk error
within "the pool is suspended" 120 sh -c 'zpool list -Ho health tank | grep SUSPENDED'
stopped "a suspended pool"
load_ends
finish

# One boot of a machine that is rebooted and loses its power: STEP is install, load or check.
# What was acknowledged is written down outside of the machine.
. ./lib.sh
export JOURNAL=$PWD/acknowledged
case ${STEP:?} in
  install)
    rm -f "$JOURNAL"
    installed tarn.deb
    ok "enable the service" systemctl enable --now tarn.service
    ok "first request" etcdctl put key value
    ok "enable the timer" systemctl enable --now tarn-snapshot.timer
    sync
    finish
    ;;
esac
within "the system is up" 300 systemctl is-system-running
same "units that failed" "" "$(systemctl --failed --no-legend --plain)"
same "health of the pool" ONLINE "$(zpool list -Ho health tank)"
same "dataset" yes "$(zfs get -Ho value mounted tank/tarn)"
same "socket" active "$(active tarn.socket)"
same "service" active "$(active tarn.service)"
same "the key" value "$(key key)"
say "ready $(($(property tarn.service ActiveEnterTimestampMonotonic) / 1000)) ms after the boot; failed starts: $(property tarn.service NRestarts)"
ok "nothing that was acknowledged is lost" client check -journal "$JOURNAL"
told
if [ "$STEP" = load ] && [ "$failed" = 0 ]; then
  load_begins
  enough=$(($(wc -l <"$JOURNAL") + 100 + RANDOM % 300))
  within "some load" 600 sh -c "test \$(wc -l <'$JOURNAL') -ge $enough"
  vm-power-cut
  ok "the power is gone" false
  finish
fi
ok "tarn-snapshot.service" systemctl start tarn-snapshot.service
zpool scrub -w tank
same "the pool after a scrub" "all pools are healthy" "$(zpool status -x)"
finish

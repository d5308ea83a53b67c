# Restarts and upgrades under load: no client is refused, nothing is lost, repeated or missed.
. ./lib.sh
installed tarn.deb
ok "first request" etcdctl put key value
enabled=$(property tarn.socket ActiveEnterTimestampMonotonic)
load_begins -writers 4 -readers 2 -pause 100ms
starts=()
timed() { # of the last start: from the process to ready
  starts+=($((($(property tarn.service ActiveEnterTimestampMonotonic) - $(property tarn.service ExecMainStartTimestampMonotonic)) / 1000)))
}
restarts=${RESTARTS:-50} upgrades=${UPGRADES:-10}
for ((n = 1; n <= restarts; n++)); do
  systemctl restart tarn.service || ok "restart $n" false
  timed
  sleep 0.5
done
say "$restarts restarts; from the start of the process to ready (ms): ${starts[*]}"
starts=()
for ((n = 1; n <= upgrades; n++)); do
  deb=tarn.deb
  [ $((n % 2)) = 0 ] || deb=tarn-next.deb
  before=$(property tarn.service ExecMainStartTimestampMonotonic)
  ok "$([ $deb = tarn.deb ] && echo downgrade || echo upgrade) $n" dpkg --install $deb
  ok "it runs anew" test "$(property tarn.service ExecMainStartTimestampMonotonic)" -gt "$before"
  ok "it is the program of the package" cmp "/proc/$(property tarn.service MainPID)/exe" /usr/bin/tarn
  timed
  sleep 0.5
done
say "$upgrades upgrades and downgrades; from the start of the process to ready (ms): ${starts[*]}"
load_ends
same "the socket is the one from before" "$enabled" "$(property tarn.socket ActiveEnterTimestampMonotonic)"
same "the key" value "$(key key)"
finish

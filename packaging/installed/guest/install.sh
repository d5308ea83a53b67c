# Installed, set up and enabled, the server starts with the first request, and a client that
# comes before the store is there waits for it.
. ./lib.sh
ok "install" dpkg --install tarn.deb
ok "nothing runs and no store is made by the installation" not pgrep -x tarn
same "files in /var/lib/tarn" "" "$(ls -A /var/lib/tarn 2>/dev/null)"
systemctl start tarn.socket
ok "before tarn init nobody is answered" not etcdctl --command-timeout=20s get key
within "the journal says what is to be done" 60 logged tarn.service 'tarn init'
log tarn.service | grep 'tarn init' | tail -n 1 | sed 's/^/   /'
systemctl stop tarn.socket tarn.service
same "files in /var/lib/tarn" "" "$(ls -A /var/lib/tarn 2>/dev/null)"

zpool create -o ashift=12 tank /dev/disk/by-id/virtio-zd0 || exit
ok "tarn init" tarn init tank/tarn
ok "enable the socket" systemctl enable --now tarn.socket
same "socket" active "$(active tarn.socket)"
same "service" inactive "$(active tarn.service)"
ok "the first request, over TCP, is answered" etcdctl put key value
same "service" active "$(active tarn.service)"
same "the key over TCP" value "$(key key)"
same "the key over IPv6" value "$(ETCDCTL_ENDPOINTS='http://[::1]:2379' key key)"
same "the key over the unix socket" value "$(ETCDCTL_ENDPOINTS=unix:/run/tarn/tarn.sock key key)"
say "status: $(property tarn.service StatusText)"

systemctl stop tarn.service
same "socket after a stop of the service" active "$(active tarn.socket)"
same "the first request over the unix socket" value "$(ETCDCTL_ENDPOINTS=unix:/run/tarn/tarn.sock key key)"
same "service" active "$(active tarn.service)"

# waited WHAT: a client that connects now, 15 s before the store is there.
waited() {
  local answer ready
  answer=$(client get -endpoints "$1" key)
  ready=$(property tarn.service ActiveEnterTimestampMonotonic)
  echo "$answer" >/run/answer
  read -r connected answered value < <(sed 's/[a-z]*=//g' /run/answer)
  same "its answer" value "$value"
  ok "it connected before the server was ready, and was answered afterwards" test "$connected" -lt "$ready"
  say "$1: connected $(((ready - connected) / 1000)) ms before the server was ready, answered $(((answered - ready) / 1000)) ms after"
}

# A start that takes 15 s.
systemctl stop tarn.service
mkdir -p /run/systemd/system/tarn.service.d
printf '[Service]\nExecStartPre=+/bin/sleep 15\n' >/run/systemd/system/tarn.service.d/slow.conf
systemctl daemon-reload
waited http://127.0.0.1:2379
systemctl stop tarn.service
waited unix:/run/tarn/tarn.sock
rm -r /run/systemd/system/tarn.service.d
systemctl daemon-reload

# A store that is not there for 15 s: the server must not make another one, nor give up.
systemctl stop tarn.service
zfs unmount tank/tarn || exit
(sleep 15 && zfs mount tank/tarn) &
waited http://127.0.0.1:2379
wait
same "socket" active "$(active tarn.socket)"
say "starts that failed for the missing dataset: $(property tarn.service NRestarts)"
finish

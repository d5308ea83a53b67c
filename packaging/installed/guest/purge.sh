# Removing keeps the data, purging keeps the dataset and says so, and a new installation
# serves what was there.
. ./lib.sh
installed tarn.deb
ok "first request" etcdctl put key value

ok "remove" dpkg --remove tarn
ok "nothing runs" not pgrep -x tarn
listeners() { ss -Hltn 'sport = :2379'; }
same "listeners" "" "$(listeners)"
ok "the data are there" test -n "$(ls -A /var/lib/tarn)"
ok "the configuration is there" grep -q 'dataset: tank/tarn' /etc/tarn/tarn.yaml
ok "install again" dpkg --install tarn.deb
same "socket, enabled before" enabled "$(systemctl is-enabled tarn.socket)"
ok "start the socket" systemctl start tarn.socket
same "the key" value "$(key key)"

ok "purge" dpkg --purge tarn
told
ok "it says that the data are kept" grep -q 'data are kept' <<<"$out"
ok "nothing runs" not pgrep -x tarn
same "listeners" "" "$(listeners)"
same "what is left in /etc" "" "$(find /etc -name '*tarn*' -not -path '*/tarn-vm*' -not -name 'tarn-vm*')"
ok "the dataset is there" test -n "$(ls -A /var/lib/tarn)"
same "owner of the data" tarn "$(stat -c %U /var/lib/tarn)"

ok "install for the second time" dpkg --install tarn.deb
same "socket" disabled "$(systemctl is-enabled tarn.socket)"
ok "tarn init on what is there" tarn init tank/tarn
told
ok "enable the socket" systemctl enable --now tarn.socket
same "the key" value "$(key key)"
finish

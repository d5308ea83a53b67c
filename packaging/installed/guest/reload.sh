# A reload takes a new certificate and a new log level, under load and without a request that
# is cut off; what can not be used is not taken. A stop ends in order.
. ./lib.sh
installed tarn.deb
tls=/etc/tarn/tls
install -d $tls
client certificate $tls >/run/serial
chgrp tarn $tls/server.key && chmod 640 $tls/server.key
printf '%s\n' "cert-file: $tls/server.crt" "key-file: $tls/server.key" 'log-level: info' >>/etc/tarn/tarn.yaml
export ETCDCTL_ENDPOINTS=https://127.0.0.1:2379 ETCDCTL_CACERT=$tls/trusted.crt
shown() { client serial -endpoints https://127.0.0.1:2379 -trusted $tls/trusted.crt; }
said() { [ "$(log tarn.service | grep -c "$1")" = "$2" ]; }
shows() { [ "$(shown)" = "$1" ]; }
same "certificate at the start" "$(cat /run/serial)" "$(shown)"
ok "a request over TLS" etcdctl put key value
process=$(property tarn.service MainPID)

load_begins -uncut -endpoints https://127.0.0.1:2379,unix:/run/tarn/tarn.sock -trusted $tls/trusted.crt
for ((n = 1; n <= 6; n++)); do
  level=warn
  [ $((n % 2)) = 1 ] || level=info
  serial=$(client certificate $tls)
  sed -i "s/^log-level: .*/log-level: $level/" /etc/tarn/tarn.yaml
  ok "reload $n" systemctl reload tarn.service
  within "the new certificate is shown" 60 shows "$serial"
  within "log level $level" 60 said "log level is set.*level=$level" $(((n + 1) / 2))
done
echo broken >$tls/server.crt
ok "a reload with a broken certificate" systemctl reload tarn.service
within "the journal says so" 60 logged tarn.service 'certificates can not be used'
same "certificate after that" "$serial" "$(shown)"
client certificate $tls >/run/serial
ok "a reload with a good one" systemctl reload tarn.service
within "it is shown" 60 shows "$(cat /run/serial)"
same "the process is the one from before" "$process" "$(property tarn.service MainPID)"
load_ends

begin=$(date +%s%N)
ok "stop" systemctl stop tarn.service
say "it took $((($(date +%s%N) - begin) / 1000000)) ms"
same "result" success "$(property tarn.service Result)"
same "exit status" 0 "$(property tarn.service ExecMainStatus)"
ok "the journal has the end" logged tarn.service 'msg=stopped'
ok "tarn check" tarn check /var/lib/tarn
same "the key, from the next process" value "$(key key)"
finish

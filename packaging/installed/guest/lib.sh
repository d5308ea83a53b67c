# Sourced by the tests, which run as root in the machine.
set -u
export PATH=$PWD:$PATH # etcdctl, client and probe come with the tests
export ETCDCTL_ENDPOINTS=http://127.0.0.1:2379
failed=0

# Its time-out of 5 s is short here, and no variable changes it.
etcdctl() { command etcdctl --dial-timeout=2m --command-timeout=2m "$@"; }
say() { echo "   $*"; }

# ok WHAT COMMAND...: the command must succeed. What it says is shown if it does not, and
# with told if it does.
ok() {
  local what=$1
  shift
  if out=$("$@" 2>&1); then echo "ok: $what"; else
    echo "FAILED: $what: $* (status $?)"
    [ -z "$out" ] || sed 's/^/     /' <<<"$out" | tail -n 30
    failed=1
  fi
}

told() { sed 's/^/   /' <<<"$out"; }

# same WHAT WANTED GOT
same() {
  if [ "$2" = "$3" ]; then echo "ok: $1: $3"; else
    echo "FAILED: $1: '$3' instead of '$2'"
    failed=1
  fi
}

# within WHAT SECONDS COMMAND...: the command must succeed sooner or later.
within() {
  local what=$1 limit=$2 begin=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $((SECONDS - begin)) -ge "$limit" ]; then
      echo "FAILED: $what: not within $limit s: $*"
      failed=1
      return 1
    fi
    sleep 0.2
  done
  echo "ok: $what"
}

not() { ! "$@"; }
active() { systemctl is-active "$1"; }
property() { systemctl show --property "$2" --value "$1"; }
log() { journalctl --boot --no-pager --output cat --unit "$1"; }
# logged UNIT TEXT: the text is in the unit's journal, or in what systemd says about it.
logged() { journalctl --boot --no-pager --output cat --unit "$1" --grep "$2" --quiet; }
key() { etcdctl get --print-value-only "$1"; }

# finish shows the journal if something went wrong, and ends the test.
finish() {
  if [ "$failed" != 0 ]; then
    echo "--- the end of the journal"
    journalctl --boot --no-pager --unit 'tarn*' | tail -n "${JOURNAL_LINES:-60}"
  fi
  exit "$failed"
}

# installed DEB [DEVICE]: what a user does, up to the enabled socket.
installed() {
  ok "install $1" dpkg --install "$1"
  zpool create -o ashift=12 tank "${2:-/dev/disk/by-id/virtio-zd0}" || exit
  ok "tarn init" tarn init tank/tarn
  ok "enable the socket" systemctl enable --now tarn.socket
}

# load_begins [flag...]: a load that runs until load_ends, which has its verdict.
load_begins() {
  rm -f /run/load-ready
  client load -journal "${JOURNAL:-/run/acknowledged}" -ready /run/load-ready "$@" >/run/load-report 2>&1 &
  load=$!
  within "the load runs" 300 test -e /run/load-ready
}

load_ends() {
  local status=0
  kill -TERM "$load"
  wait "$load" || status=$?
  same "status of the load, which is 0 if it has seen nothing wrong" 0 "$status"
  sed 's/^/   /' /run/load-report
}

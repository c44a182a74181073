#!/usr/bin/env bash
# Installs the deb on a machine with systemd as the first process. Scrapes, reloads, stops, kills and freezes the service,
# starts it with a wrong configuration, and purges it. Takes two to five minutes. Needs root and a disposable Debian 12,
# such as a virtual machine. The tests do not run it. Exit code 77: this machine cannot run it.
#
#     deploy/systemd/try.sh linkgauge_VERSION-1_amd64.deb
#
# LIMIT=8000: milliseconds of `systemctl stop`, for an emulated processor.
set -euo pipefail

package=${1:?path of the deb is missing}
[ "$(id -u)" = 0 ] || { echo "not tried: not root"; exit 77; }
[ -d /run/systemd/system ] || { echo "not tried: systemd is not the first process"; exit 77; }
! dpkg-query -W linkgauge >/dev/null 2>&1 || { echo "not tried: linkgauge is already installed"; exit 77; }

configuration=/etc/linkgauge/linkgauge.toml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

log() { echo "$(date +%H:%M:%S) $*"; }
failed() { log "FAILED: $*"; journalctl -u linkgauge -n 30 --no-pager; exit 1; }
property() { systemctl show linkgauge -p "$1" --value; }
scrape() { python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9841/metrics", timeout=60).read().decode())'; }
logged() { journalctl -u linkgauge --no-pager -o cat "$@"; }
last_error() { logged | sed -n 's/^Error: //p' | tail -n 1; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $end ] || failed "timeout: $what"
    sleep 0.2
  done
}
is_running() { [ "$(property ActiveState)/$(property SubState)" = active/running ]; }
is_failed() { [ "$(property ActiveState)" = failed ]; }
is_restarted() { is_running && [ "$(property MainPID)" != "$1" ]; }
logs() { logged | grep "$1" >/dev/null; }
cycle_time() { scrape | sed -n 's/^linkgauge_cycle_timestamp_seconds //p'; }
is_later() { local now && now=$(cycle_time) && [ -n "$now" ] && [ "$now" != "$1" ]; }
next_cycle() {
  local before
  before=$(cycle_time)
  wait_for 60 "another cycle" is_later "$before"
}
findings() { sed -n 's/^linkgauge_finding{\(.*\)} 1.0$/\1/p' | sort; }

# The service in its sandbox must report the same findings as root without a sandbox.
try_running() {
  dpkg -i "$package" >"$work/dpkg" 2>&1 || { cat "$work/dpkg"; failed "dpkg -i"; }
  is_running || failed "the service does not run after the installation"
  log "ready; $(property Type), user $(ps -o user= -p "$(property MainPID)"), $(systemd-analyze security linkgauge | tail -n 1)"
  sed -i 's/^# cycle = .*/cycle = "2s"/' $configuration
  systemctl reload linkgauge
  wait_for 30 "the log confirms the reload" logs '^reloaded$'
  for _ in 1 2 3; do next_cycle; done # a state becomes a finding after two cycles
  scrape >"$work/service"
  linkgauge diagnose --passive --format json >"$work/report.json" || [ $? -le 3 ] || failed "diagnose"
  python3 - "$work/report.json" >"$work/root" <<'END'
import json, sys
for one in json.load(open(sys.argv[1]))["findings"]:
    if not one.get("silenced"):
        print('code="%s",subject="%s"' % (one["code"], one["subject"]))
END
  sort -o "$work/root" "$work/root"
  findings <"$work/service" | diff "$work/root" - || failed "different findings: < root, > service"
  log "$(grep -vc '^#' "$work/service") series; same findings as root: $(wc -l <"$work/root") findings"
  grep -F 'linkgauge_not_checked{' "$work/service" || true
}

try_wrong_configuration() {
  sed -i '1icycles = "15s"' $configuration
  systemctl reload linkgauge || true
  wait_for 30 "the log reports that the reload failed" logs '^not reloaded'
  is_running || failed "a wrong configuration stopped the service"
  [ -n "$(logged -p err)" ] || failed "the journal has no error for the wrong configuration"
  systemctl restart linkgauge 2>/dev/null && failed "the service starts with a wrong configuration"
  sleep 1
  [ "$(property Result)/$(property ExecMainStatus)/$(property NRestarts)" = exit-code/64/0 ] || failed "the service did not exit with 64 and without restart"
  log "wrong configuration: a reload keeps the old one; a restart fails: $(last_error)"
  sed -i 1d $configuration
  systemctl reset-failed linkgauge
  systemctl start linkgauge
}

# At different moments: while the service sleeps, reads or judges.
try_stopping() {
  local at before took most=0
  for at in 0.1 0.4 0.7 1.0 1.3 1.6 1.9 2.2; do
    systemctl is-active -q linkgauge || systemctl start linkgauge
    sleep "$at"
    before=$(milliseconds)
    systemctl stop linkgauge 2>/dev/null # it names the socket
    took=$(($(milliseconds) - before))
    [ $took -le $most ] || most=$took
    [ "$(property Result)" = success ] || failed "stopped with $(property Result)"
  done
  [ $most -le "${LIMIT:-2000}" ] || failed "SIGTERM took $most ms"
  log "stopped 8 times, within $most ms"
  systemctl start linkgauge
}

try_killing() {
  local before
  printf '[Service]\nRestartSec=1s\nWatchdogSec=20s\nTimeoutAbortSec=2s\n' >"$work/quick.conf"
  install -D -m 644 "$work/quick.conf" /etc/systemd/system/linkgauge.service.d/quick.conf
  systemctl daemon-reload
  systemctl restart linkgauge
  for _ in 1 2 3; do next_cycle; done
  scrape | findings >"$work/before"
  before=$(property MainPID)
  kill -9 "$before"
  wait_for 60 "systemd restarts the service after kill -9" is_restarted "$before"
  scrape | findings | diff "$work/before" - || failed "findings are lost after a restart"
  log "killed: restarted, the same findings at the first scrape"
  before=$(property MainPID)
  kill -STOP "$before"
  wait_for 90 "the watchdog kills the service and systemd restarts it" is_restarted "$before"
  logs 'Watchdog timeout' || failed "the watchdog did not kill the service"
  log "frozen: the watchdog killed the service, systemd restarted it"
  rm /etc/systemd/system/linkgauge.service.d/quick.conf
  systemctl daemon-reload
}

# Another user cannot answer on the port while the service is stopped, or cannot start however often a client connects.
try_taking_the_port() {
  local code
  sed -i '1icycles = "15s"' $configuration
  systemctl stop linkgauge 2>/dev/null
  for _ in $(seq 30); do
    code=0
    timeout 30 runuser -u nobody -- python3 -m http.server --bind 127.0.0.1 9841 >/dev/null 2>&1 || code=$?
    [ $code = 1 ] || failed "another user has the port: exit code $code"
    timeout 5 bash -c ': </dev/tcp/127.0.0.1/9841' || failed "nothing listens on the port"
  done
  [ "$(systemctl is-active linkgauge.socket)" = active ] || failed "the socket is $(systemctl is-active linkgauge.socket)"
  wait_for 30 "the service ends" is_failed
  [ "$(property ExecMainStatus)" = 64 ] || failed "wrong configuration: exit code $(property ExecMainStatus)"
  log "another user cannot take the port of a service that does not start"
  sed -i 1d $configuration
  systemctl reset-failed linkgauge
  systemctl start linkgauge
}

# The address is in linkgauge.socket alone.
try_second_address() {
  sed -i '1ilisten = ":9841"' $configuration
  systemctl restart linkgauge 2>/dev/null && failed "the service starts with two addresses"
  log "two addresses: $(last_error)"
  sed -i 1d $configuration
  systemctl reset-failed linkgauge
  systemctl start linkgauge
}

try_port_in_use() {
  systemctl stop linkgauge.socket linkgauge
  python3 -m http.server --bind 127.0.0.1 9841 >/dev/null 2>&1 &
  wait_for 30 "another program has the port" bash -c ': 2>/dev/null </dev/tcp/127.0.0.1/9841'
  systemctl start linkgauge 2>/dev/null && failed "the service starts although its port is in use"
  [ "$(property ExecMainStatus)" = 64 ] || failed "port in use: exit code $(property ExecMainStatus)"
  kill $!
  log "port in use: $(last_error)"
  systemctl reset-failed linkgauge.socket linkgauge
  systemctl start linkgauge
}

try_purging() {
  dpkg --purge linkgauge >/dev/null 2>&1 || failed "dpkg --purge"
  [ "$(systemctl is-active linkgauge)" != active ] || failed "the service runs after the purge"
  for left in /opt/linkgauge /etc/linkgauge /var/lib/linkgauge /lib/systemd/system/linkgauge.{service,socket}; do
    [ ! -e $left ] || failed "left after purge: $left"
  done
  ! getent passwd linkgauge >/dev/null || failed "the user is left after purge"
  ! pgrep -u linkgauge >/dev/null 2>&1 || failed "processes are left"
  log "purged; nothing is left"
}

try_running
try_wrong_configuration
try_stopping
try_killing
try_taking_the_port
try_second_address
try_port_in_use
try_purging
log "ok"

#!/usr/bin/env bash
# Installs the deb where systemd is the first process, and does to the service what happens to services: it is asked,
# reloaded, stopped, killed, stopped dead, started with what is wrong, and purged. Two to five minutes, root, and a
# Debian 12 that nobody needs, such as a virtual machine: the tests do not run it. Ends with 77 where it cannot.
#
#     deploy/systemd/try.sh linkgauge_VERSION-1_amd64.deb
set -euo pipefail

package=${1:?which deb?}
[ "$(id -u)" = 0 ] || { echo "not tried: not root"; exit 77; }
[ -d /run/systemd/system ] || { echo "not tried: systemd is not the first process here"; exit 77; }
! dpkg-query -W linkgauge >/dev/null 2>&1 || { echo "not tried: linkgauge is installed here already"; exit 77; }

configuration=/etc/linkgauge/linkgauge.toml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

said() { echo "$(date +%H:%M:%S) $*"; }
failed() { said "FAILED: $*"; journalctl -u linkgauge -n 30 --no-pager; exit 1; }
shown() { systemctl show linkgauge -p "$1" --value; }
scrape() { python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9841/metrics", timeout=9).read().decode())'; }
logged() { journalctl -u linkgauge --no-pager -o cat "$@"; }
last_error() { logged | sed -n 's/^Error: //p' | tail -n 1; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $end ] || failed "not within the time: $what"
    sleep 0.2
  done
}
is_running() { [ "$(shown ActiveState)/$(shown SubState)" = active/running ]; }
was_restarted() { is_running && [ "$(shown MainPID)" != "$1" ]; }
says() { logged | grep "$1" >/dev/null; }
cycled() { scrape | sed -n 's/^linkgauge_cycle_timestamp_seconds //p'; }
is_later() { local now && now=$(cycled) && [ -n "$now" ] && [ "$now" != "$1" ]; }
next_cycle() {
  local before
  before=$(cycled)
  wait_for 60 "another cycle" is_later "$before"
}
findings() { sed -n 's/^linkgauge_finding{\(.*\)} 1.0$/\1/p' | sort; }

# Where it runs in its sandbox, it should tell what root without one tells.
try_running() {
  dpkg -i "$package" >"$work/dpkg" 2>&1 || { cat "$work/dpkg"; failed "dpkg -i"; }
  is_running || failed "not running after it was installed"
  said "ready; $(shown Type), user $(ps -o user= -p "$(shown MainPID)"), $(systemd-analyze security linkgauge | tail -n 1)"
  sed -i 's/^# cycle = .*/cycle = "2s"/' $configuration
  systemctl reload linkgauge
  wait_for 30 "it says that it was reloaded" says '^reloaded$'
  for _ in 1 2 3; do next_cycle; done # states show once they were seen twice
  scrape >"$work/service"
  linkgauge diagnose --passive --format json >"$work/report.json" || [ $? -le 3 ] || failed "diagnose"
  python3 - "$work/report.json" >"$work/root" <<'END'
import json, sys
for one in json.load(open(sys.argv[1]))["findings"]:
    if not one.get("silenced"):
        print('code="%s",subject="%s"' % (one["code"], one["subject"]))
END
  sort -o "$work/root" "$work/root"
  findings <"$work/service" | diff "$work/root" - || failed "root finds the first, the service the second"
  said "$(grep -vc '^#' "$work/service") series; finds what root finds: $(wc -l <"$work/root") findings"
  grep -F 'linkgauge_not_checked{' "$work/service" || true
}

try_wrong_configuration() {
  sed -i '1icycles = "15s"' $configuration
  systemctl reload linkgauge || true
  wait_for 30 "the log says that it was not reloaded" says '^not reloaded'
  is_running || failed "a wrong configuration ended it"
  [ -n "$(logged -p err)" ] || failed "the wrong configuration is no error in the journal"
  systemctl restart linkgauge 2>/dev/null && failed "it starts with a wrong configuration"
  sleep 1
  [ "$(shown Result)/$(shown ExecMainStatus)/$(shown NRestarts)" = exit-code/64/0 ] || failed "it did not end with 64, once"
  said "wrong configuration: kept the old one; not started with it: $(last_error)"
  sed -i 1d $configuration
  systemctl reset-failed linkgauge
  systemctl start linkgauge
}

# At moments of any kind: while it sleeps, reads, judges.
try_stopping() {
  local at before took most=0
  for at in 0.1 0.4 0.7 1.0 1.3 1.6 1.9 2.2; do
    systemctl is-active -q linkgauge || systemctl start linkgauge
    sleep "$at"
    before=$(milliseconds)
    systemctl stop linkgauge
    took=$(($(milliseconds) - before))
    [ $took -le $most ] || most=$took
    [ "$(shown Result)" = success ] || failed "stopped with $(shown Result)"
  done
  [ $most -le 2000 ] || failed "SIGTERM took $most ms"
  said "stopped 8 times, within $most ms"
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
  before=$(shown MainPID)
  kill -9 "$before"
  wait_for 60 "it is started again after kill -9" was_restarted "$before"
  scrape | findings | diff "$work/before" - || failed "a restart has forgotten findings"
  said "killed: started again, with the same findings at the first scrape"
  before=$(shown MainPID)
  kill -STOP "$before"
  wait_for 90 "the watchdog ends it, and it is started again" was_restarted "$before"
  says 'Watchdog timeout' || failed "not the watchdog has ended it"
  said "stopped dead: the watchdog has ended it, and it runs again"
  rm /etc/systemd/system/linkgauge.service.d/quick.conf
  systemctl daemon-reload
}

try_taken_port() {
  systemctl stop linkgauge
  python3 -m http.server --bind 127.0.0.1 9841 >/dev/null 2>&1 &
  sleep 1
  systemctl start linkgauge 2>/dev/null && failed "it starts on a port that is taken"
  [ "$(shown ExecMainStatus)" = 64 ] || failed "a taken port: exit code $(shown ExecMainStatus)"
  kill $!
  said "port taken: $(last_error)"
  systemctl reset-failed linkgauge
  systemctl start linkgauge
}

try_purging() {
  dpkg --purge linkgauge >/dev/null 2>&1 || failed "dpkg --purge"
  [ "$(systemctl is-active linkgauge)" != active ] || failed "it runs after it was purged"
  for left in /opt/linkgauge /etc/linkgauge /var/lib/linkgauge /lib/systemd/system/linkgauge.service; do
    [ ! -e $left ] || failed "left after purge: $left"
  done
  ! getent passwd linkgauge >/dev/null || failed "its user is left after purge"
  ! pgrep -u linkgauge >/dev/null 2>&1 || failed "processes are left"
  said "purged; nothing is left"
}

try_running
try_wrong_configuration
try_stopping
try_killing
try_taken_port
try_purging
said "ok"

#!/usr/bin/env bash
# Builds the packages. Installs, runs, scrapes, upgrades, removes and purges them in a new Debian. Takes four to six
# minutes. Needs root, debootstrap, rpm and a mirror (MIRROR=..., or that of apt). The tests do not run it. Exit code 77: this machine
# cannot run it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sed -nE 's/^(URIs:|deb) +(https?:[^ ]+).*/\2/p' | head -n 1)}
[ -n "$mirror" ] || { echo "not tried: no mirror of Debian is known; set MIRROR"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "not tried: not root"; exit 77; }
for tool in debootstrap dpkg-deb rpmbuild ip curl; do
  command -v $tool >/dev/null || { echo "not tried: $tool is missing"; exit 77; }
done

work=$(mktemp -d)
chmod 755 "$work"
new=$work/debian
clean() { umount -R "$new/proc" "$new/sys" "$new/shared" 2>/dev/null || true; rm -rf --one-file-system "$work"; }
trap clean EXIT

log() { echo "$(date +%H:%M:%S) $*"; }
failed() { log "FAILED: $*"; exit 1; }
inside() { chroot "$new" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes "$@"; }

# All users, and all files except the data of apt and dpkg.
state() {
  (cd "$new" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path './var/cache/*' \
    -o -path './var/log/*' -o -path './var/lib/apt/*' -o -path './var/lib/dpkg/*' -o -name '*-' \) -prune -o -print
  cut -d : -f 1 etc/passwd etc/group) | sort
}
left() { state | comm -13 "$work/before" -; }

# Runs the command of the unit as the user of the unit in a new network namespace, and scrapes it.
scrape() {
  local unit user command
  unit=$(find "$new/lib/systemd/system/" -name linkgauge.service)
  user=$(sed -n 's/^User=//p' "$unit")
  command=$(sed -n 's/^ExecStart=//p' "$unit")
  unshare --net --pid --fork --kill-child bash -eu -c '
    ip link set lo up
    chroot "$1" setpriv --reuid "$2" --regid "$2" --init-groups $3 2>"$4" &
    for _ in $(seq 100); do
      curl -sf http://127.0.0.1:9841/metrics >"$5" && grep -q "^linkgauge_probe_success" "$5" && break
      sleep 0.1
    done
    kill $!
    wait $! || true' - "$new" "$user" "$command" "$work/log" "$work/metrics" ||
    { cat "$work/log"; failed "the service did not run"; }
  grep -q '^linkgauge_probe_success' "$work/metrics" || { cat "$work/log"; failed "the scrape has no series"; }
  [ -n "$(ls "$new/var/lib/linkgauge")" ] || failed "the service saved no state"
  log "scraped $(grep -vc '^#' "$work/metrics") series from: $command (user $user)"
}

try_deb() {
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y "/tmp/${first##*/}" >/dev/null
  inside linkgauge --version
  inside linkgauge explain pcie-link-narrow >/dev/null
  scrape
  echo 'log = "warning"' >>"$new/etc/linkgauge/linkgauge.toml"
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y "/tmp/${second##*/}" >/dev/null
  [ "$(inside dpkg-query -W -f '${Version}' linkgauge)" = "$(dpkg-deb -f "$second" Version)" ] || failed "the upgrade failed"
  [ "$(tail -n 1 "$new/etc/linkgauge/linkgauge.toml")" = 'log = "warning"' ] || failed "the upgrade lost the configuration"
  scrape
  inside apt-get remove -qq -o Dpkg::Use-Pty=0 -y linkgauge >/dev/null
  log "removed; left: $(left | tr '\n' ' ')"
  ! left | grep -vE '^(\./etc/linkgauge|\./var/lib/linkgauge)(/|$)|^linkgauge$' || failed "unexpected files are left"
  inside apt-get purge -qq -o Dpkg::Use-Pty=0 -y linkgauge >/dev/null
  [ -z "$(left)" ] || failed "left after purge: $(left)"
  log "purged; nothing is left"
}

# The tree is in another folder, on a read-only mount.
try_tree() {
  mkdir "$new/shared"
  mount --bind "$work/out" "$new/shared"
  mount -o remount,ro,bind "$new/shared"
  inside setpriv --reuid nobody --regid nogroup --clear-groups \
    /shared/linkgauge/bin/linkgauge diagnose --passive --format json >"$work/report" || [ $? = 3 ]
  grep -q linkgauge.report/1 "$work/report" || failed "no report"
  umount "$new/shared" && rmdir "$new/shared"
  log "the tree gave a report from a read-only mount"
}

# Uses the rpm of Debian instead of Red Hat: tries scripts and files, not dependencies.
try_rpm() {
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y --no-install-recommends rpm >/dev/null
  state >"$work/before"
  inside rpm --force-debian --dbpath /tmp/rpm -i --nodeps --nosignature "/tmp/${rpm##*/}"
  inside linkgauge --version
  inside rpm --force-debian --dbpath /tmp/rpm -e linkgauge
  log "rpm removed; left: $(left | tr '\n' ' ')"
  # On Red Hat systems, two of these folders belong to packages that this Debian does not have.
  ! left | grep -vE '^\./(var/lib/linkgauge(/.*)?|opt|usr/lib/sysusers\.d)$|^linkgauge$' || failed "unexpected files are left"
}

log "building"
mkdir "$work/out"
"$here/build.sh" tree "$work/out"
RELEASE=1 "$here/build.sh" deb "$work/out"
RELEASE=1 "$here/build.sh" rpm "$work/out"
first=$(ls "$work"/out/*.deb) rpm=$(find "$work/out" -name '*.rpm')
second=$work/out/upgrade.deb
dpkg-deb -R "$first" "$work/again"
sed -i 's/^Version: .*/&.1/' "$work/again/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/again" "$second" >/dev/null
log "$(cd "$work/out" && du -sh linkgauge "${first##*/}" "${rpm#"$work/out/"}" | tr '\n\t' ', ')"
debootstrap --variant=minbase --include=python3 bookworm "$new" "$mirror" >/dev/null
cp "$first" "$second" "$rpm" "$new/tmp"
mount --bind /proc "$new/proc" && mount --bind /sys "$new/sys"
state >"$work/before"
log "Debian is installed"
try_deb
try_tree
try_rpm
log "ok"

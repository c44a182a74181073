#!/usr/bin/env bash
# Builds the packages, and installs, runs, scrapes, upgrades, removes and purges them in a new Debian. Four to six
# minutes, root, debootstrap, rpm and a mirror (MIRROR=...): the tests do not run it. Ends with 77 where it cannot.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
[ "$(id -u)" = 0 ] || { echo "not tried: not root"; exit 77; }
for tool in debootstrap dpkg-deb rpmbuild ip curl; do
  command -v $tool >/dev/null || { echo "not tried: no $tool here"; exit 77; }
done

work=$(mktemp -d)
chmod 755 "$work"
new=$work/debian
cleaned() { umount -R "$new/proc" "$new/sys" "$new/shared" 2>/dev/null || true; rm -rf --one-file-system "$work"; }
trap cleaned EXIT

said() { echo "$(date +%H:%M:%S) $*"; }
failed() { said "FAILED: $*"; exit 1; }
inside() { chroot "$new" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes "$@"; }

# All files but what apt and dpkg keep of themselves, and all users.
state() {
  (cd "$new" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path './var/cache/*' \
    -o -path './var/log/*' -o -path './var/lib/apt/*' -o -path './var/lib/dpkg/*' -o -name '*-' \) -prune -o -print
  cut -d : -f 1 etc/passwd etc/group) | sort
}
left() { state | comm -13 "$work/before" -; }

# The command of the unit as the user of the unit, in a network of its own; what it answers.
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
  grep -q '^linkgauge_probe_success' "$work/metrics" || { cat "$work/log"; failed "nothing was scraped"; }
  [ -n "$(ls "$new/var/lib/linkgauge")" ] || failed "the service kept nothing"
  said "scraped $(grep -vc '^#' "$work/metrics") series from: $command (user $user)"
}

try_deb() {
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y "/tmp/${first##*/}" >/dev/null
  inside linkgauge --version
  inside linkgauge explain pcie-link-narrow >/dev/null
  scrape
  echo 'log = "warning"' >>"$new/etc/linkgauge/linkgauge.toml"
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y "/tmp/${second##*/}" >/dev/null
  [ "$(inside dpkg-query -W -f '${Version}' linkgauge)" = "$(dpkg-deb -f "$second" Version)" ] || failed "no upgrade"
  [ "$(tail -n 1 "$new/etc/linkgauge/linkgauge.toml")" = 'log = "warning"' ] || failed "the configuration is gone"
  scrape
  inside apt-get remove -qq -o Dpkg::Use-Pty=0 -y linkgauge >/dev/null
  said "removed; left: $(left | tr '\n' ' ')"
  ! left | grep -vE '^(\./etc/linkgauge|\./var/lib/linkgauge)(/|$)|^linkgauge$' || failed "more was left"
  inside apt-get purge -qq -o Dpkg::Use-Pty=0 -y linkgauge >/dev/null
  [ -z "$(left)" ] || failed "left after purge: $(left)"
  said "purged; nothing is left"
}

# Where it stands does not matter, and nobody can write there.
try_tree() {
  mkdir "$new/shared"
  mount --bind "$work/out" "$new/shared"
  mount -o remount,ro,bind "$new/shared"
  inside setpriv --reuid nobody --regid nogroup --clear-groups \
    /shared/linkgauge/bin/linkgauge diagnose --passive --format json >"$work/report" || [ $? = 3 ]
  grep -q linkgauge.report/1 "$work/report" || failed "no report"
  umount "$new/shared" && rmdir "$new/shared"
  said "the tree gave a report from a read-only mount"
}

# Debian's rpm in the place of Red Hat's: scripts and files are tried, dependencies are not.
try_rpm() {
  inside apt-get install -qq -o Dpkg::Use-Pty=0 -y --no-install-recommends rpm >/dev/null
  state >"$work/before"
  inside rpm --force-debian --dbpath /tmp/rpm -i --nodeps --nosignature "/tmp/${rpm##*/}"
  inside linkgauge --version
  inside rpm --force-debian --dbpath /tmp/rpm -e linkgauge
  said "rpm removed; left: $(left | tr '\n' ' ')"
  # Two folders are of their file system and systemd, which this Debian does not have.
  ! left | grep -vE '^\./(var/lib/linkgauge(/.*)?|opt|usr/lib/sysusers\.d)$|^linkgauge$' || failed "more was left"
}

said "building"
mkdir "$work/out"
"$here/build.sh" tree "$work/out"
RELEASE=1 "$here/build.sh" deb "$work/out"
RELEASE=1 "$here/build.sh" rpm "$work/out"
first=$(ls "$work"/out/*.deb) rpm=$(find "$work/out" -name '*.rpm')
second=$work/out/upgrade.deb
dpkg-deb -R "$first" "$work/again"
sed -i 's/^Version: .*/&.1/' "$work/again/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/again" "$second" >/dev/null
said "$(cd "$work/out" && du -sh linkgauge "${first##*/}" "${rpm#"$work/out/"}" | tr '\n\t' ', ')"
debootstrap --variant=minbase --include=python3 bookworm "$new" "$mirror" >/dev/null
cp "$first" "$second" "$rpm" "$new/tmp"
mount --bind /proc "$new/proc" && mount --bind /sys "$new/sys"
state >"$work/before"
said "Debian stands"
try_deb
try_tree
try_rpm
said "ok"

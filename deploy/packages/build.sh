#!/usr/bin/env bash
# Builds linkgauge with all dependencies, for nodes without access to a package index:
#
#   build.sh tree FOLDER   FOLDER/linkgauge: a virtual environment that runs from any folder, also read-only
#   build.sh deb FOLDER    a package for Debian 12
#   build.sh rpm FOLDER    a package for RHEL 8 and 9; it uses their python3.11
#
# Needs a git checkout or an unpacked release, Python 3.11 with venv, and dpkg-deb or rpmbuild.
#   PYTHON=python3.11   Python for the build; INTERPRETER=/usr/bin/python3.11: Python of the nodes
#   EXTRAS=web,cuda     see pyproject.toml; RELEASE=1: number of the package of one version
#   LOCK=FILE           versions and hashes of the dependencies with these extras (lock.sh)
#
# It downloads only files whose hashes are in requirements.lock and build.lock. The tree contains its list of
# components, linkgauge/sbom.cdx.json (CycloneDX).
set -euo pipefail
umask 022

kind=${1:-} out=${2:-}
case $kind in tree | deb | rpm) ;; *) kind= ;; esac
[ -n "$kind" ] && [ -n "$out" ] || { echo "usage: $0 tree|deb|rpm FOLDER" >&2; exit 64; }

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3.11}
interpreter=${INTERPRETER:-/usr/bin/python3.11}
extras=${EXTRAS:-web,cuda}
release=${RELEASE:-1}
lock=${LOCK:-$here/requirements.lock}
[ "$(head -n 1 "$lock")" = "# extras: $extras" ] || {
  echo "$lock is not for the extras $extras: write a file with EXTRAS=$extras $here/lock.sh FILE, and set LOCK" >&2
  exit 64
}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$top/src/linkgauge/__init__.py")
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# RHEL 8 has the oldest C library of these systems, 2.28. Without this list, pip would select wheels for the C library of
# this machine.
platforms=()
for minor in $(seq 28 -1 17); do platforms+=(--platform "manylinux_2_${minor}_$(uname -m)"); done
platforms+=(--platform "manylinux2014_$(uname -m)" --platform any)

make_tree() { # FOLDER: a virtual environment (PEP 405) without absolute paths to itself
  local tree=$1 site=$1/lib/python3.11/site-packages
  "$python" -m venv "$work/pip"
  "$work/pip/bin/pip" install --quiet --require-hashes --only-binary :all: -r "$here/build.lock"
  mkdir "$work/source" # a copy, because the build writes files beside the sources
  tar -C "$top" -c pyproject.toml README.md LICENSE src agent exporters models probes | tar -C "$work/source" -x
  "$work/pip/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/wheel" "$work/source"
  mkdir -p "$tree/bin" "$site"
  "$work/pip/bin/pip" install --quiet --no-compile --only-binary :all: --python-version 3.11 "${platforms[@]}" \
    --target "$work/site" --require-hashes -r "$lock"
  "$work/pip/bin/pip" install --quiet --no-compile --no-deps --no-index --target "$work/site" "$work"/wheel/*.whl
  rm -rf "$work/site/bin" "$work"/site/linkgauge-*.dist-info/direct_url.json # contain folders of this machine
  cp -a "$work/site/." "$site"
  printf 'home = %s\ninclude-system-site-packages = false\nversion = 3.11\n' "${interpreter%/*}" >"$tree/pyvenv.cfg"
  ln -s "$interpreter" "$tree/bin/python3"
  install -m 755 "$here/linkgauge" "$tree/bin/linkgauge"
  "$work/pip/bin/cyclonedx-py" environment --output-reproducible --of JSON -o "$tree/sbom.cdx.json" "$tree/bin/python3"
  # unchecked-hash: Python never compares times of files, because the tree does not change after the build.
  "$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$tree" -p / "$site"
}

make_root() { # FOLDER: the files of both packages
  local root=$1 shell
  make_tree "$root/opt/linkgauge"
  install -d "$root/usr/bin" "$root/usr/share/man/man1" "$root/usr/share/linkgauge" "$root/etc/linkgauge"
  cp -r "$top/deploy/slurm" "$root/usr/share/linkgauge"
  cp -r "$top/deploy/systemd/examples" "$root/usr/share/linkgauge/linkgauge.service.d"
  install -Dm 644 "$top/deploy/systemd/sysusers.conf" "$root/usr/lib/sysusers.d/linkgauge.conf"
  install -Dm 644 "$top/deploy/systemd/tmpfiles.conf" "$root/usr/lib/tmpfiles.d/linkgauge.conf"
  ln -s /opt/linkgauge/bin/linkgauge "$root/usr/bin/linkgauge"
  install -m 644 "$here"/etc/*.toml "$root/etc/linkgauge"
  PYTHONPATH=$root/opt/linkgauge/lib/python3.11/site-packages "$work/pip/bin/python" "$here/man_pages.py" \
    "$root/usr/share/man/man1"
  gzip -9n "$root"/usr/share/man/man1/*
  for shell in bash zsh fish; do "$root/opt/linkgauge/bin/linkgauge" completion $shell >"$work/$shell"; done
  install -Dm 644 "$work/bash" "$root/usr/share/bash-completion/completions/linkgauge"
  install -Dm 644 "$work/fish" "$root/usr/share/fish/vendor_completions.d/linkgauge.fish"
  install -Dm 644 "$top/LICENSE" "$root/usr/share/doc/linkgauge/copyright"
}

make_deb() {
  local root=$work/root architecture
  architecture=$(dpkg --print-architecture)
  make_root "$root"
  install -Dm 644 "$work/zsh" "$root/usr/share/zsh/vendor-completions/_linkgauge"
  install -Dm 644 -t "$root/lib/systemd/system" "$top"/deploy/systemd/linkgauge.{service,socket}
  install -d "$root/DEBIAN"
  install -m 755 "$here"/debian/{postinst,prerm,postrm} "$root/DEBIAN"
  (cd "$root" && find etc -type f -printf '/%p\n') >"$root/DEBIAN/conffiles"
  sed -e "s/@VERSION@/$version-$release/" -e "s/@ARCHITECTURE@/$architecture/" \
    -e "s/@SIZE@/$(du -sk --exclude DEBIAN "$root" | cut -f 1)/" "$here/debian/control" >"$root/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$root" "$out/linkgauge_$version-${release}_$architecture.deb" >/dev/null
}

make_rpm() {
  local root=$work/root
  make_root "$root"
  install -Dm 644 "$work/zsh" "$root/usr/share/zsh/site-functions/_linkgauge"
  install -Dm 644 -t "$root/usr/lib/systemd/system" "$top"/deploy/systemd/linkgauge.{service,socket}
  rpmbuild -bb --quiet --define "_topdir $work/rpm" --define "_rpmdir $out" --define "version_of_it $version" \
    --define "release_of_it $release" --define "root_of_it $root" "$here/linkgauge.spec"
}

case $kind in
  tree) make_tree "$out/linkgauge" ;;
  deb) make_deb ;;
  rpm) make_rpm ;;
esac

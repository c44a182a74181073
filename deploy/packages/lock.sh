#!/usr/bin/env bash
# Writes the versions and hashes of all packages that build.sh may download, for Python 3.11:
#
#   lock.sh                  requirements.lock and build.lock beside this script
#   EXTRAS=web lock.sh FILE  FILE for other extras, which build.sh takes as LOCK=FILE
#
# Needs uv (https://docs.astral.sh/uv/pip/compile). Look at the difference before you commit it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
extras=${EXTRAS:-web,cuda}
out=$(realpath "${1:-$here/requirements.lock}")
compile=(uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-annotate --no-header)

cd "$here/../.."
options=()
for extra in ${extras//,/ }; do options+=(--extra "$extra"); done
{ echo "# extras: $extras"; "${compile[@]}" "${options[@]}" pyproject.toml; } >"$out.new"
mv "$out.new" "$out"
if [ $# = 0 ]; then
  "${compile[@]}" deploy/packages/build.in >"$here/build.lock.new"
  mv "$here/build.lock.new" "$here/build.lock"
fi

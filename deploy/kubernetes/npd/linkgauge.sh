#!/bin/bash
# Plugin of node-problem-detector. Usage: linkgauge.sh failed|degraded [FILE]. FILE is the `textfile` of linkgauge.toml.
# Exit code 1: the verdict is failed (or degraded, if asked for that); 0: another known verdict; 2: unknown. Prints the
# reason in at most 80 characters, the limit of node-problem-detector. Uses only bash: its image has few other programs.
set -u
export LC_ALL=C # decimal points in numbers
wanted=${1:-failed} file=${2:-/var/lib/linkgauge/linkgauge.prom}
oldest=300 # seconds; an older file means unknown
declare -A severity=([degraded]=2 [failed]=3)

unknown() { echo "$1"; exit 2; }
[ -n "${severity[$wanted]:-}" ] || unknown "linkgauge.sh failed|degraded [FILE]"
[ -r "$file" ] || unknown "${file##*/} is not readable: is linkgauge serve running?"

verdict='' at=0 found=()
finding='^linkgauge_finding_severity\{code="([^"]*)",subject="([^"]*)"\} ([0-9]+)'
while IFS= read -r line; do
  case $line in
    linkgauge_verdict\{verdict=*\ 1.0) verdict=${line#*\"} verdict=${verdict%%\"*} ;;
    linkgauge_cycle_timestamp_seconds\ *) printf -v at '%.0f' "${line#* }" 2>/dev/null || at=0 ;;
    linkgauge_finding_severity*)
      if [[ $line =~ $finding ]] && [ "${BASH_REMATCH[3]}" = "${severity[$wanted]}" ]; then
        found+=("${BASH_REMATCH[1]} ${BASH_REMATCH[2]}")
      fi ;;
  esac
done <"$file"

printf -v now '%(%s)T' -1
[ $((now - at)) -le $oldest ] || unknown "linkgauge serve has not completed a cycle for $((now - at)) s"
case $verdict in
  ok | failed | degraded) ;;
  unknown) unknown "a vital check could not run: run linkgauge diagnose" ;;
  *) unknown "no verdict in $file" ;;
esac
[ "$verdict" = "$wanted" ] || exit 0

text='' left=${#found[@]}
for one in "${found[@]}"; do
  next=$text${text:+, }$one
  [ ${#next} -le 70 ] || break # the rest is for " (+1234)"
  text=$next left=$((left - 1))
done
[ "$left" = 0 ] || text="${text:-${found[0]:0:70}} (+$left)"
echo "${text:-$wanted}"
exit 1

# Sourced by ./quickstart and ./runtests: what the machine needs, the presets, and timed phases.
set -euo pipefail
export NINJA_STATUS="[%f/%t, %e s] "
phases=() seconds=() cpu_seconds=() outcomes=()

die() { printf '\n%s: %s\n' "$(basename "$0")" "$1" >&2; exit "${2:-1}"; }

# Sets `cpu` to the processor seconds of all children so far: what a phase costs, however busy the
# machine is.
count_cpu() {
  local user system
  mkdir -p build && times >build/times
  { read -r _; read -r user system; } <build/times
  user=${user%.*} system=${system%.*}
  cpu=$((60 * ${user%m*} + 10#${user#*m} + 60 * ${system%m*} + 10#${system#*m}))
}

# phase NAME COMMAND...: runs the command under a heading and keeps its times for show_times.
phase() {
  local name=$1 start=$SECONDS status=0 cpu before; shift
  count_cpu; before=$cpu
  printf '\n== %s (at %d s)\n' "$name" "$start"
  "$@" || status=$?
  count_cpu
  phases+=("$name"); seconds+=($((SECONDS - start))); cpu_seconds+=($((cpu - before)))
  outcomes+=("$([ $status = 0 ] && echo ok || echo FAILED)")
  return $status
}

# The table of phases, which build/phases.json keeps as a row a line.
show_times() {
  printf '\n%-28s %7s %7s\n' phase time cpu
  mkdir -p build
  for i in "${!phases[@]}"; do
    local row=("${phases[$i]}" "${seconds[$i]}" "${cpu_seconds[$i]}" "${outcomes[$i]}")
    printf '%-28s %5d s %5d s  %s\n' "${row[@]}"
    printf '{"phase": "%s", "seconds": %d, "cpu_seconds": %d, "outcome": "%s"}\n' "${row[@]}" >&3
  done 3>build/phases.json
}

wanted_packages() { grep -v '^#' tools/debian-packages | sort; }

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' 2>/dev/null |
    sed -n 's/^installed \([^:]*\).*/\1/p' | sort -u)
  comm -23 <(wanted_packages) <(echo "$installed") | xargs
}

# Installs what tools/debian-packages lists and the machine lacks. Root is needed only then.
install_packages() {
  local missing as_root=()
  command -v apt-get >/dev/null || die "there is no apt-get, so this is not Debian; install what \
matches these packages, then run again with --no-install: $(wanted_packages | xargs)" 3
  missing=$(missing_packages)
  [ -n "$missing" ] || { echo "all packages are there"; return 0; }
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; run as root: \
apt-get install --no-install-recommends $missing" 3
    as_root=(sudo)
  fi
  echo "installing: $missing"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086  # a list of words
  { "${as_root[@]}" apt-get -q update &&
    "${as_root[@]}" apt-get -q install -y --no-install-recommends $missing; } ||
    die "apt-get failed, its message is above; if there is no network, install by hand: $missing" 3
}

# .venv with exactly requirements.txt, which names every package with its version.
make_venv() {
  local want; want=$(sha256sum <requirements.txt)
  if [ "$(cat .venv/requirements.sha 2>/dev/null)" = "$want" ]; then
    echo ".venv is current"
    return
  fi
  rm -rf .venv
  python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements.txt ||
    die "pip failed, its message is above; requirements.txt needs the package index" 3
  echo "$want" >.venv/requirements.sha
}

set_up() {
  [ "$install" = 0 ] || phase "packages" install_packages
  phase "python packages" make_venv
}

# build PRESET TARGET...: configures when it must, then builds.
build() {
  local preset=$1 made=build/$1/build.ninja; shift
  if [ ! -f "$made" ] || [ CMakePresets.json -nt "$made" ] ||
    [ .venv/requirements.sha -nt "$made" ]; then
    cmake --preset "$preset" || return
    touch "$made"
  fi
  cmake --build --preset "$preset" --target "$@"
}

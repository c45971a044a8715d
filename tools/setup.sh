# Set-up shared by tools/run and tools/test: packages, configuration, build. Sourced, not executed.
# All chatter goes to stderr. Says and does nothing when there is nothing to do.

svod_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What a build needs. third_party/README.md says why each is there.
svod_build_packages=(
  ccache cmake g++ libabsl-dev libbenchmark-dev libedit-dev libgmock-dev libgtest-dev libtbb-dev
  libonnx-dev libprotobuf-dev libxxhash-dev libzstd-dev lld-22 llvm-22-dev llvm-22-tools ninja-build
  pkg-config protobuf-compiler python3)
# What the checks of tools/test need beyond that.
svod_check_packages=(
  clang-22 clang-format-22 clang-tidy-22 gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  libclang-rt-22-dev libonnx-testdata qemu-user)

svod_say() { printf 'svod: %s\n' "$*" >&2; }

# Installs the named Debian packages that are missing. Needs no network when none is.
svod_install() {
  # On other systems the packages are the user's business; CMake says which it misses.
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local package missing=() installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qx "installed $package" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      svod_say "not root and no sudo; as root, run: apt-get install -y ${missing[*]}"
      return 1
    fi
    as_root=(sudo)
  fi
  svod_say "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update </dev/null >&2 || return 1
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2; then
    svod_say "LLVM 22 is in Debian 12's security archive: see that apt's sources have" \
      "'deb http://deb.debian.org/debian-security bookworm-security main'"
    return 1
  fi
}

# Configures a preset when it never was, when the presets changed since, or when the tree was moved.
svod_configure() {
  local preset=$1 build=$svod_root/build/$1
  local cache=$build/CMakeCache.txt
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$svod_root" "$cache"; then
    rm -rf "$build"
  fi
  if [[ ! -e $build/build.ninja || $svod_root/CMakePresets.json -nt $build/build.ninja ]]; then
    svod_say "configuring $preset"
    (cd "$svod_root" && cmake --preset "$preset") </dev/null >&2
    touch "$build/build.ninja"
  fi
}

# svod_build <preset> [target...]: configures and builds; without a target builds all.
# One at a time per preset, so that two runs in one tree do not disturb each other.
svod_build() {
  local preset=$1 build=$svod_root/build/$1
  shift
  mkdir -p "$build"
  (
    flock 9
    svod_configure "$preset" || exit 1
    if [[ $(ninja -C "$build" -n "$@" 2>/dev/null) != *'no work to do'* ]]; then
      svod_say "building $preset"
      ninja -C "$build" "$@" 9>&- </dev/null >&2
    fi
  ) 9>"$build.lock"
}

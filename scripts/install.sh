#!/usr/bin/env bash
# Installs what is missing for a task, on Debian and Ubuntu. Says nothing when nothing is missing.
#
#   scripts/install.sh build         what compiling needs
#   scripts/install.sh test          and what the tests need
#   scripts/install.sh bench         and what the benchmark needs
#   scripts/install.sh pgo           and what a build with a profile needs
#   scripts/install.sh base-images   what scripts/base-images.sh needs
set -euo pipefail

readonly task=${1:-build}
# Where Debian keeps nginx, ip and debootstrap; the PATH of an ordinary user lacks it.
PATH=$PATH:/usr/sbin:/sbin
packages=()

# need COMMAND PACKAGE
need() {
    command -v "$1" >/dev/null || packages+=("$2")
}

# need_package PACKAGE..: what is no command, such as a module of nginx
need_package() {
    local package
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || packages+=("$package")
    done
}

needs_of() {
    case $1 in
    build)
        need cc build-essential
        need c++ build-essential # libFuzzer, and what else is C++
        need make build-essential
        need cmake cmake # zlib-ng, which Pingora builds
        need pkg-config pkg-config
        need curl curl
        ;;
    test)
        needs_of build
        need nginx nginx-light
        need strace strace
        need ip iproute2
        # The oracle (core/tests/oracle): the same jobs in nginx with Lua.
        need_package libnginx-mod-http-lua libnginx-mod-http-headers-more-filter lua-cjson
        ;;
    bench)
        needs_of test
        need wrk wrk
        need valgrind valgrind
        need haproxy haproxy
        ;;
    pgo)
        needs_of bench
        need openssl openssl
        need python3 python3
        local llvm
        llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
        # What reads profiles comes with the compiler or is of the same LLVM.
        if [ ! -x "$(rustc --print target-libdir)/../bin/llvm-profdata" ]; then
            need "llvm-profdata-$llvm" "llvm-$llvm"
        fi
        ;;
    base-images)
        need debootstrap debootstrap
        ;;
    *)
        echo "install: unknown task \`$1\`: build, test, bench, pgo or base-images" >&2
        exit 2
        ;;
    esac
}

install_packages() {
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        echo "install: this system has no apt-get; install what these Debian packages hold: $*" >&2
        exit 1
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "install: run this as root: apt-get install $*" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    echo "install: $*"
    # A lock held by another apt is waited for.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install "$@" >/dev/null
}

needs_of "$task"
if [ ${#packages[@]} -gt 0 ]; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    install_packages "${packages[@]}"
fi

if [ "$task" != base-images ] && ! command -v cargo >/dev/null; then
    cat >&2 <<'END'
install: there is no cargo. Install Rust (1.90 or newer) from https://rustup.rs :
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh
then open a new shell, or `. ~/.cargo/env`, and run this again.
END
    exit 1
fi

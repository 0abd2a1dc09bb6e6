#!/usr/bin/env bash
# Makes the two base images of the Dockerfile on a machine that reaches a Debian mirror but no
# container registry: debian:bookworm-slim, and rust:1-bookworm from the Rust toolchain that is
# installed here. An image that exists already is left alone. Needs root, debootstrap and docker.
#
#   DEBIAN_MIRROR   where packages come from (default: http://deb.debian.org/debian)
set -euo pipefail

readonly runtime=debian:bookworm-slim
readonly builder=rust:1-bookworm
readonly mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

fail() {
    echo "base-images: $*" >&2
    exit 1
}

exists() {
    docker image inspect "$1" >/dev/null 2>&1
}

if exists "$runtime" && exists "$builder"; then
    exit 0
fi
[ "$(id -u)" = 0 ] || fail "debootstrap needs root"
command -v debootstrap >/dev/null || fail "install debootstrap first"
command -v rustc >/dev/null || fail "no Rust toolchain here to copy into $builder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# debootstrap leaves its root readable for its owner only.
umask 022
mkdir "$work/packages"

# root FOLDER [PACKAGES]: a minimal Debian in $work/FOLDER.
root() {
    debootstrap --variant=minbase --cache-dir="$work/packages" ${2:+--include="$2"} \
        bookworm "$work/$1" "$mirror" >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "debootstrap failed"
    }
    rm -rf "$work/$1"/var/cache/apt/archives/*.deb "$work/$1"/var/lib/apt/lists/* \
        "$work/$1"/usr/share/{doc,man,locale}/*
}

if ! exists "$runtime"; then
    echo "base-images: making $runtime"
    root slim
    tar -C "$work/slim" -c . | docker import --change 'CMD ["bash"]' - "$runtime" >/dev/null
fi

if ! exists "$builder"; then
    echo "base-images: making $builder"
    root build build-essential,ca-certificates,cmake,pkg-config
    # Whom this machine trusts, the build trusts: behind an inspecting proxy nothing else works.
    if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
        cp -L /etc/ssl/certs/ca-certificates.crt "$work/build/etc/ssl/certs/ca-certificates.crt"
    fi
    toolchain=$(rustc --print sysroot)
    mkdir -p "$work/build/usr/local/bin" "$work/build/usr/local/lib"
    cp "$toolchain/bin/cargo" "$toolchain/bin/rustc" "$work/build/usr/local/bin/"
    cp -a "$toolchain/lib/." "$work/build/usr/local/lib/"
    tar -C "$work/build" -c . | docker import --change 'ENV CARGO_HOME=/usr/local/cargo' \
        --change 'ENV PATH=/usr/local/cargo/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' \
        --change 'CMD ["bash"]' - "$builder" >/dev/null
fi

#!/usr/bin/env bash
# Sees to it that the images which a Dockerfile is built on are there: those that no registry gives are made here
# (scripts/base-images.sh).
#
#   scripts/bases.sh DOCKERFILE
set -euo pipefail
cd "$(dirname "$0")/.."

for base in $(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$1"); do
    if ! docker image inspect "$base" >/dev/null 2>&1 && ! docker pull -q "$base"; then
        echo "bases: $base can't be pulled, so it is made here" >&2
        scripts/install.sh base-images
        scripts/base-images.sh
        break
    fi
done

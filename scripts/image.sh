#!/usr/bin/env bash
# Builds the container image.
#
#   IMAGE     its name (default: edgewright)
#   PROFILE   the cargo profile: release (default), or release-fast for trying things out
#
# The base images are pulled. Where no registry answers they are made here, which needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly image=${IMAGE:-edgewright}
readonly profile=${PROFILE:-release}

if ! docker version >/dev/null 2>&1; then
    echo "image: no docker engine answers" >&2
    exit 1
fi
scripts/bases.sh Dockerfile

# A proxy that this shell uses is used by the build, and does not end up in the image.
arguments=()
for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
    if [ -n "${!name:-}" ]; then
        arguments+=(--build-arg "$name")
    fi
done
# The host's network: its resolver may be one that only the host reaches.
docker build --network host --build-arg PROFILE="$profile" "${arguments[@]}" -t "$image" .
echo "image: $image, $(docker image inspect -f '{{.Size}}' "$image" | numfmt --to=si)B"

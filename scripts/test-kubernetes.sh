#!/usr/bin/env bash
# Puts the folders of deploy/kubernetes together as `kubectl apply -k` would, and looks at what comes out. Needs kubectl or
# kustomize, and no cluster. What the files say by themselves is tested by `make test`.
#
#   CLUSTER=1   asks the cluster of the current context too whether it would take them (a dry run, nothing is changed)
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

ok() {
    passed=$((passed + 1))
    echo "ok: $*"
}

if command -v kubectl >/dev/null; then
    build=(kubectl kustomize)
elif command -v kustomize >/dev/null; then
    build=(kustomize build)
else
    echo "kubernetes: NOT RUN, there is neither kubectl nor kustomize" >&2
    exit 1
fi

# names KIND: of the objects on standard input, in which `kind` stands before `metadata`.
names() {
    awk -v kind="$1" '/^[^ ]/ { inside = $1 == "metadata:" }
        /^kind: / { of = $2 }
        inside && of == kind && /^  name: / { print $2 }'
}

for folder in deploy/kubernetes/base deploy/kubernetes/overlays/*; do
    made=$("${build[@]}" "$folder") || fail "$folder can't be put together"
    maps=$(names ConfigMap <<<"$made")
    [ "$maps" = edgewright ] || fail "$folder: the ConfigMap is \`$maps\`: under another name a change replaces the pods"
    [ "$(names Deployment <<<"$made")" = edgewright ] || fail "$folder: no Deployment, or several"
    # What the ConfigMap replaces or merges has to be whole.
    for file in edgewright.toml routes.rhai; do
        grep -q "^  $file: |" <<<"$made" || fail "$folder: the ConfigMap has no $file"
    done
    ok "$folder: $(grep -c '^kind: ' <<<"$made") objects, the ConfigMap under its own name"
    if [ "${CLUSTER:-}" = 1 ]; then
        kubectl apply --dry-run=server -f - <<<"$made" >/dev/null || fail "$folder: the cluster refuses it"
        ok "$folder: the cluster would take it"
    fi
done

echo
echo "kubernetes checks: $passed passed, 0 failed"

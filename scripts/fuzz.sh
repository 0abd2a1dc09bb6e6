#!/usr/bin/env bash
# Feeds the parsers with whatever libFuzzer thinks of (see fuzz/ and docs/architecture.md).
#
#   scripts/fuzz.sh                    every target for 20 minutes
#   scripts/fuzz.sh TARGET             this one
#   scripts/fuzz.sh TARGET SECONDS     for so long; `all` stands for every target
#
# Neither a nightly toolchain nor cargo-fuzz is needed. What is found lies in target/fuzz/artifacts/TARGET, and what
# libFuzzer learned by the way in target/fuzz/corpus/TARGET; fuzz/corpus stays as it is. Goes on with the next target after a
# finding, and ends with 1 then.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly wanted=${1:-all}
readonly seconds=${2:-1200}
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
readonly target_dir
# The longest input, in bytes: of one that is ten times as long nothing new is learned.
readonly longest=4096

targets() {
    local file
    for file in fuzz/fuzz_targets/*.rs; do
        basename "$file" .rs
    done
}

if [ "$wanted" = all ]; then
    mapfile -t names < <(targets)
elif [ -f "fuzz/fuzz_targets/$wanted.rs" ]; then
    names=("$wanted")
else
    echo "fuzz: there is no target \`$wanted\`: all, $(targets | paste -sd ' ')" >&2
    exit 2
fi

host=$(rustc -vV | sed -n 's/^host: //p')
# What cargo-fuzz passes on. With --target, build scripts and macros are not instrumented.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions"
bins=()
for name in "${names[@]}"; do bins+=(--bin "$name"); done
(cd fuzz && cargo build --locked --target "$host" --target-dir "$target_dir/fuzz/build" "${bins[@]}")

# Programs are loaded on a stack of this size in the proxy, too: in KiB.
ulimit -S -s 1048576 2>/dev/null || ulimit -S -s "$(ulimit -H -s)"

failed=()
for name in "${names[@]}"; do
    learned=$target_dir/fuzz/corpus/$name
    artifacts=$target_dir/fuzz/artifacts/$name
    mkdir -p "$learned" "$artifacts"
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len="$longest" -print_final_stats=1)
    if [ -f "fuzz/dictionaries/$name.dict" ]; then options+=(-dict="fuzz/dictionaries/$name.dict"); fi
    echo "fuzz: $name for $seconds s"
    # New inputs go to the first folder; the others are only read.
    "$target_dir/fuzz/build/$host/debug/$name" "${options[@]}" -artifact_prefix="$artifacts/" \
        "$learned" "fuzz/corpus/$name" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: findings in ${failed[*]}: $target_dir/fuzz/artifacts" >&2
    exit 1
fi
echo "fuzz: nothing found"

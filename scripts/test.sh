#!/usr/bin/env bash
# Runs every test of the workspace: through cargo-nextest when it is installed, else with cargo
# test. The last line says how many tests passed and failed; the exit code is 0 when none failed.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
# The summaries are read below.
export CARGO_TERM_COLOR=never

# run COMMAND..: shows and keeps its output.
run() {
    "$@" 2>&1 | tee -a "$log" || failed=1
}

if cargo nextest --version >/dev/null 2>&1; then
    run cargo nextest run --workspace --locked --no-fail-fast --no-tests=pass "$@"
    # nextest runs no examples in documentation.
    run cargo test --workspace --locked --doc --no-fail-fast
else
    run cargo test --workspace --locked --no-fail-fast "$@"
fi

# Both write plain text when their output is no terminal. nextest: "512 tests run: 510 passed,
# 2 failed"; cargo test: "test result: ok. 12 passed; 0 failed; ..".
awk -v failed="$failed" '
    /tests? run:/ || /^test result:/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passes += $(i - 1)
            if ($i ~ /^failed|^exec|^timed/) failures += $(i - 1)
        }
    }
    END {
        if (passes == 0) print "\nno test was run"
        printf "\ntests: %d passed, %d failed\n", passes, failures
        exit failed || failures > 0 || passes == 0
    }' "$log"

//! The size of the pool of idle upstream connections.
//!
//! Pingora's default of 128 is smaller than the number of requests in flight on a busy proxy:
//! connections churn, closed ones wait in TIME_WAIT, the ephemeral ports run out, and clients
//! see 502.

/// File descriptors kept back for what is neither a client nor an upstream connection:
/// listeners, logs, name resolution, files being read.
const RESERVED: u64 = 256;
/// Never fewer than Pingora's own default.
const LEAST: u64 = 128;
/// Above this, idle connections cost more memory (64 KiB of read buffer each) than they save.
const MOST: u64 = 16_384;

/// Idle upstream connections to keep in the whole process when nothing is configured, for a
/// limit of `nofile` open files: half of what is left after a reserve, as each request in flight
/// may hold a client's connection and an upstream's. Between 128 and 16384.
#[must_use]
pub fn auto(nofile: u64) -> usize {
    let connections = (nofile.saturating_sub(RESERVED) / 2).clamp(LEAST, MOST);
    // At most 16384 after the clamp.
    connections as usize
}

/// The value for Pingora's `upstream_keepalive_pool_size`, which Pingora multiplies by its
/// threads to get one cap for the process: rounded up, so the cap is never below `total`.
#[must_use]
pub fn per_thread(total: usize, threads: usize) -> usize {
    total.div_ceil(threads.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_follows_the_open_files_limit() {
        for (nofile, expected) in [
            (0, 128),
            (256, 128),
            (512, 128),
            (514, 129),
            (1024, 384),
            (20_000, 9_872),
            (33_023, 16_383),
            (33_024, 16_384),
            (1_048_576, 16_384),
            (u64::MAX, 16_384),
        ] {
            assert_eq!(auto(nofile), expected, "limit of {nofile}");
        }
    }

    #[test]
    fn per_thread_never_makes_the_pool_smaller() {
        for (total, threads, expected) in [
            (384, 1, 384),
            (384, 2, 192),
            (385, 2, 193),
            (128, 96, 2),
            (1, 8, 1),
            (128, 0, 128),
        ] {
            assert_eq!(
                per_thread(total, threads),
                expected,
                "{total} over {threads}"
            );
            assert!(per_thread(total, threads) * threads.max(1) >= total);
        }
    }
}

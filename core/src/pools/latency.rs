//! How long an endpoint takes to answer, as `balance = "peak_ewma"` sees it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// After which time a latency counts for `1/e` of what it did.
const DECAY: Duration = Duration::from_secs(10);

/// What a request costs where one is under way already and none has been answered yet: more than anywhere else.
const UNKNOWN: f64 = 1e15;

/// A moving mean of latencies that goes up at once and comes down slowly (peak-sensitive exponentially weighted
/// moving average, as in Finagle and linkerd): an endpoint that gets slow is left at its first slow answer, and
/// asked again, with one request, when that has faded.
///
/// Unlike there, looking at it changes nothing, so how often it is looked at doesn't matter.
#[derive(Debug, Default)]
pub(super) struct PeakEwma(
    /// The mean in microseconds, an `f32`, in the upper half, and in the lower one when it was that, in
    /// milliseconds since [`start`], which come round after 49 days; 0 before the first answer.
    AtomicU64,
);

#[derive(Debug, Clone, Copy)]
struct Mean {
    micros: f32,
    at: u32,
}

impl PeakEwma {
    /// Takes in a latency. One that `only_adds` counts when it is above the mean: what fails quickly is no
    /// reason to come here.
    #[inline]
    pub(super) fn observe(&self, now: Instant, latency: Duration, only_adds: bool) {
        let micros = (latency.as_secs_f64() * 1e6).max(1.0);
        let now = millis(now);
        let update = |packed: u64| {
            let mean = match Mean::unpack(packed) {
                None if only_adds => return None,
                None => micros,
                Some(mean) => {
                    let weight = mean.weight(now);
                    let faded = f64::from(mean.micros) * weight;
                    match micros > faded {
                        true => micros,
                        false if only_adds => return None,
                        false => faded + micros * (1.0 - weight),
                    }
                }
            };
            let micros = mean as f32;
            Some(Mean { micros, at: now }.pack())
        };
        // Nothing else hangs on it, so no order is needed; `None` leaves it as it is.
        let _ = self.0.fetch_update(Relaxed, Relaxed, update);
    }

    /// What one more request would cost beside `in_flight` others: microseconds, as if each waited for the others.
    #[inline]
    pub(super) fn cost(&self, now: Instant, in_flight: usize) -> f64 {
        match Mean::unpack(self.0.load(Relaxed)) {
            Some(mean) => mean.faded(millis(now)) * (in_flight as f64 + 1.0),
            // The first request finds out; the others wait for what it finds.
            None if in_flight == 0 => 0.0,
            None => UNKNOWN + in_flight as f64,
        }
    }

    /// The mean now; `None` before the first answer.
    pub(super) fn mean(&self, now: Instant) -> Option<Duration> {
        let mean = Mean::unpack(self.0.load(Relaxed))?;
        Some(Duration::from_secs_f64(mean.faded(millis(now)) / 1e6))
    }
}

impl Mean {
    fn pack(self) -> u64 {
        (u64::from(self.micros.to_bits()) << 32) | u64::from(self.at)
    }

    fn unpack(packed: u64) -> Option<Self> {
        (packed != 0).then_some(Self {
            micros: f32::from_bits((packed >> 32) as u32),
            at: packed as u32,
        })
    }

    /// What part of it is left.
    fn weight(self, now: u32) -> f64 {
        // A clock that another thread read earlier is no time at all.
        let passed = (now.wrapping_sub(self.at) as i32).max(0);
        (-f64::from(passed) / DECAY.as_millis() as f64).exp()
    }

    fn faded(self, now: u32) -> f64 {
        f64::from(self.micros) * self.weight(now)
    }
}

/// The beginning of the time that is counted here.
fn start() -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START
}

fn millis(now: Instant) -> u32 {
    now.saturating_duration_since(start()).as_millis() as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A mean in milliseconds, rounded.
    fn mean(ewma: &PeakEwma, now: Instant) -> u128 {
        (ewma.mean(now).unwrap() + Duration::from_micros(500)).as_millis()
    }

    #[test]
    fn it_goes_up_at_once_and_comes_down_slowly() {
        let ewma = PeakEwma::default();
        let now = start();
        assert_eq!(ewma.mean(now), None);
        ewma.observe(now, ms(100), false);
        assert_eq!(mean(&ewma, now), 100);
        ewma.observe(now, ms(2000), false);
        assert_eq!(mean(&ewma, now), 2000);
        // Quick answers of the same moment say nothing of later ones.
        ewma.observe(now, ms(1), false);
        assert_eq!(mean(&ewma, now), 2000);
        let later = now + DECAY;
        assert_eq!(mean(&ewma, later), 736);
        ewma.observe(later, ms(100), false);
        // 2000/e, and 100 for the rest.
        assert_eq!(mean(&ewma, later), 799);
        let end = later + 20 * DECAY;
        ewma.observe(end, ms(100), false);
        assert_eq!(mean(&ewma, end), 100);
    }

    #[test]
    fn what_fails_quickly_is_no_recommendation() {
        let ewma = PeakEwma::default();
        let now = start();
        ewma.observe(now, ms(1), true);
        assert_eq!(ewma.mean(now), None);
        ewma.observe(now, ms(100), false);
        let later = now + DECAY;
        ewma.observe(later, ms(1), true);
        assert_eq!(mean(&ewma, later), 37);
        // What fails slowly is a warning.
        ewma.observe(later, ms(5000), true);
        assert_eq!(mean(&ewma, later), 5000);
    }

    #[test]
    fn who_is_unknown_gets_one_request() {
        let now = start();
        let unknown = PeakEwma::default();
        let known = PeakEwma::default();
        known.observe(now, Duration::from_secs(60), false);
        assert!(unknown.cost(now, 0) < known.cost(now, 0));
        assert!(unknown.cost(now, 1) > known.cost(now, 100));
        assert!(unknown.cost(now, 1) < unknown.cost(now, 2));
        let twice = known.cost(now, 0) * 2.0;
        assert!((known.cost(now, 1) - twice).abs() < 1.0);
    }

    #[test]
    fn clocks_come_round_and_may_be_a_little_behind() {
        let mean = Mean {
            micros: 100.0,
            at: u32::MAX - 5_000,
        };
        let e = std::f64::consts::E;
        assert!((mean.faded(4_999) - 100.0 / e).abs() < 0.1);
        assert!((mean.faded(u32::MAX - 6_000) - 100.0).abs() < f64::EPSILON);
    }
}

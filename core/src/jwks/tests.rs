use std::time::Duration;

use super::task::retry;

#[test]
fn failures_are_tried_again_soon_and_then_seldom() {
    let refresh = Duration::from_secs(60);
    let seconds: Vec<u64> = [1, 2, 3, 4, 5, 6, 7, 8, 40, u32::MAX]
        .map(|failed| retry(failed, refresh).as_secs())
        .to_vec();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
}

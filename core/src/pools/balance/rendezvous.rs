//! The endpoint that a key likes best, without a table: for the few requests of a pool that is balanced otherwise, whose
//! script gives a key.

use edgewright_script::stable_hash::remix;

use super::Place;

/// Each endpoint has a score for each key, and the highest one wins; the others only move up when it goes (Thaler and
/// Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998; weights after Schindelhauer and Schomaker,
/// "Weighted Distributed Hash Tables", 2005).
pub(super) fn choose(places: &[Place], key: u64, may: impl Fn(usize) -> bool) -> Option<usize> {
    let score = |place: &Place| {
        let mixed = remix(place.hash ^ remix(key)) >> 11;
        // Above 0 and below 1, in 53 bits.
        let uniform = (mixed as f64 + 0.5) / (1_u64 << 53) as f64;
        f64::from(place.weight) / -uniform.ln()
    };
    let allowed = places.iter().enumerate().filter(|&(index, _)| may(index));
    allowed
        .map(|(index, place)| (index, score(place)))
        .max_by(|(_, one), (_, two)| one.total_cmp(two))
        .map(|(index, _)| index)
}

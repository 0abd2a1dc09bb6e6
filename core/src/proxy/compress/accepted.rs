//! `Accept-Encoding`: what a client can decode, and what it likes most (RFC 9110 section 12.5.3).

use edgewright_script::program::ContentCoding;

/// The coding that a client likes most, of those that are offered; the first one where it likes several
/// the same. `None` when it wants none.
pub(in crate::proxy) fn best<'l>(
    lines: impl Iterator<Item = &'l str>,
    offered: &[ContentCoding],
) -> Option<ContentCoding> {
    let mut weights = vec![None; offered.len()];
    let (mut others, mut identity) = (None, None);
    for item in lines.flat_map(|line| line.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(weight).unwrap_or(1000);
        if name == "*" {
            others = Some(weight);
        } else if name.eq_ignore_ascii_case("identity") {
            identity = Some(weight);
        } else if let Some(index) = position(name, offered) {
            weights[index] = Some(weight);
        }
    }
    let mut best: Option<(u16, ContentCoding)> = None;
    for (&coding, weight) in offered.iter().zip(weights) {
        let weight = weight.or(others).unwrap_or(0);
        if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, coding));
        }
    }
    let (weight, coding) = best?;
    // Whoever says that it likes plain text more gets it.
    identity
        .is_none_or(|plain| plain <= weight)
        .then_some(coding)
}

fn position(name: &str, offered: &[ContentCoding]) -> Option<usize> {
    let name = if name.eq_ignore_ascii_case("x-gzip") {
        "gzip"
    } else {
        name
    };
    offered
        .iter()
        .position(|coding| coding.name().eq_ignore_ascii_case(name))
}

/// `q=0.5` in thousandths; what is no weight counts as none.
fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value: f32 = value.trim().parse().unwrap_or(0.0);
    Some((value.clamp(0.0, 1.0) * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentCoding::{Brotli, Gzip, Zstd};

    #[test]
    fn the_liked_one_then_the_preferred_one() {
        let all = ContentCoding::ALL;
        for (line, expected) in [
            ("gzip, br, zstd", Some(Zstd)),
            ("gzip, deflate, br", Some(Brotli)),
            ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("*", Some(Zstd)),
            ("*;q=0.1, zstd;q=0", Some(Brotli)),
            ("gzip;q=0", None),
            ("gzip;q=0.5, identity", None),
            ("gzip;q=nonsense", None),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(best([line].into_iter(), &all), expected, "{line}");
        }
        assert_eq!(
            best(["gzip", "br"].into_iter(), &[Gzip, Brotli]),
            Some(Gzip)
        );
        assert_eq!(best(["br"].into_iter(), &[Gzip]), None);
    }
}

//! Which endpoints of a pool are used: the cap on ejections, and the panic rule.

use std::time::Instant;

use crate::config::Thousandths;

/// One endpoint, as far as the rules look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Used only when no other is.
    pub(super) backup: bool,
    /// Nobody knows yet, and it isn't used before somebody does.
    pub(super) pending: bool,
    /// Its checks fail.
    pub(super) unhealthy: bool,
    /// Requests have failed on it.
    pub(super) ejected_until: Option<Instant>,
}

/// What the rules make of a pool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// By the member's position.
    pub(super) usable: Vec<bool>,
    /// Ejected ones that are one too many, and come back at once.
    pub(super) released: Vec<usize>,
    /// Too few are left, so all are used.
    pub(super) panic: bool,
}

/// The most of `count` endpoints that may be ejected at a time. One alone never is: it would only turn
/// errors into other errors.
pub(super) fn cap(count: usize, max_share: Thousandths) -> usize {
    if count < 2 {
        0
    } else {
        max_share.of(count).min(count)
    }
}

/// Applies the rules.
///
/// - No more than [`cap`] are ejected; beyond it (the pool has shrunk) those come back first whose
///   time is over first.
/// - What is ejected or unhealthy is out. When more than the share is out of the targets of one kind
///   (backups, and the others), all of that kind are used: the few that are left would not carry
///   the load, and a check that fails everywhere is more likely wrong itself. Unless the other kind can
///   carry it: backups are there for just that.
/// - Where nobody is left and a first verdict is still awaited, that is waited for.
pub(super) fn plan(members: &[Member], max_share: Thousandths) -> Plan {
    let released = released(members, cap(members.len(), max_share));
    let is_out = |index: usize| {
        let member = &members[index];
        member.unhealthy || (member.ejected_until.is_some() && !released.contains(&index))
    };
    let kinds = [false, true].map(|backup| {
        let of_kind = members.iter().enumerate();
        let judged: Vec<usize> = of_kind
            .filter(|(_, member)| member.backup == backup && !member.pending)
            .map(|(index, _)| index)
            .collect();
        let out = judged.iter().filter(|index| is_out(**index)).count();
        Kind {
            judged: judged.len(),
            out,
            backup,
        }
    });
    let is_any_left = kinds.iter().any(|kind| kind.out < kind.judged);
    let is_any_pending = members.iter().any(|member| member.pending);
    let panics = kinds.map(|kind| {
        let too_many = kind.out > max_share.of(kind.judged);
        let carried_elsewhere = kind.out == kind.judged && (is_any_left || is_any_pending);
        (kind.backup, too_many && !carried_elsewhere)
    });
    let is_panicking = |backup| panics.contains(&(backup, true));
    let usable = members
        .iter()
        .enumerate()
        .map(|(index, member)| !member.pending && (!is_out(index) || is_panicking(member.backup)));
    Plan {
        usable: usable.collect(),
        panic: panics.iter().any(|(_, panic)| *panic),
        released,
    }
}

struct Kind {
    backup: bool,
    judged: usize,
    out: usize,
}

fn released(members: &[Member], cap: usize) -> Vec<usize> {
    let all = members.iter().enumerate();
    let mut ejected: Vec<(Instant, usize)> = all
        .filter_map(|(index, member)| Some((member.ejected_until?, index)))
        .collect();
    let too_many = ejected.len().saturating_sub(cap);
    ejected.sort_unstable();
    ejected.truncate(too_many);
    ejected.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const HALF: Thousandths = Thousandths(500);

    /// `.` is well, `u` unhealthy, `e` ejected, `?` pending; capitals (and `,`) are backups.
    fn members(text: &str) -> Vec<Member> {
        let until = Instant::now() + Duration::from_secs(5);
        text.chars()
            .enumerate()
            .map(|(index, c)| Member {
                backup: c.is_uppercase() || c == ',',
                pending: c == '?',
                unhealthy: c.eq_ignore_ascii_case(&'u'),
                ejected_until: c
                    .eq_ignore_ascii_case(&'e')
                    .then(|| until + Duration::from_secs(index as u64)),
            })
            .collect()
    }

    fn shown(text: &str, share: Thousandths) -> String {
        let plan = plan(&members(text), share);
        let used: String = plan
            .usable
            .iter()
            .map(|used| if *used { '+' } else { '-' })
            .collect();
        used + if plan.panic { "!" } else { "" }
    }

    #[test]
    fn what_is_out_is_not_used_until_too_much_is() {
        for (given, expected) in [
            ("", ""),
            (".", "+"),
            ("..", "++"),
            ("u.", "-+"),
            ("e.", "-+"),
            ("u..", "-++"),
            // Two of three are more than half.
            ("uu.", "+++!"),
            ("eu.", "+++!"),
            ("uu..", "--++"),
            ("eu..", "--++"),
            ("uuu.", "++++!"),
            ("uu", "++!"),
            // A pool of one is used, whatever is said of it.
            ("u", "+!"),
            ("e", "+"),
            // One too many comes back: the one whose time is over first.
            ("ee", "+-"),
            ("eee.", "+--+"),
        ] {
            assert_eq!(shown(given, HALF), expected, "{given}");
        }
    }

    #[test]
    fn without_a_cap_there_is_no_panic() {
        let all = Thousandths(1000);
        for (given, expected) in [("u", "-"), ("uu", "--"), ("ee", "--"), ("ue.", "--+")] {
            assert_eq!(shown(given, all), expected, "{given}");
        }
        // And nothing is ejected without a share, and nothing left out.
        let none = Thousandths::ZERO;
        for (given, expected) in [("ee.", "+++"), ("u..", "+++!")] {
            assert_eq!(shown(given, none), expected, "{given}");
        }
    }

    #[test]
    fn backups_carry_what_the_others_can_not() {
        for (given, expected) in [
            // All others are out: the backup is used, without panic.
            ("uu,", "--+"),
            ("u,", "-+"),
            ("e,", "-+"),
            // Too many others are out, but not all: they panic, as they do without a backup.
            ("uu.,", "++++!"),
            // A backup that is out keeps nobody from being used.
            ("..U", "++-"),
            // Nobody is left.
            ("uuU", "+++!"),
        ] {
            assert_eq!(shown(given, HALF), expected, "{given}");
        }
    }

    #[test]
    fn nothing_panics_before_the_first_verdicts() {
        for (given, expected) in [("??", "--"), ("u?", "--"), (".?", "+-"), ("u.?", "-+-")] {
            assert_eq!(shown(given, HALF), expected, "{given}");
        }
    }

    fn any_member() -> impl Strategy<Value = Member> {
        let until = Instant::now();
        let ejected = proptest::option::weighted(0.4, 0u64..1000);
        (
            any::<bool>(),
            proptest::bool::weighted(0.1),
            any::<bool>(),
            ejected,
        )
            .prop_map(move |(backup, pending, unhealthy, ejected)| Member {
                backup,
                pending,
                unhealthy,
                ejected_until: ejected.map(|millis| until + Duration::from_millis(millis)),
            })
    }

    proptest! {
        #[test]
        fn never_more_than_the_cap_are_ejected(
            members in proptest::collection::vec(any_member(), 0..40), share in 0u32..=1000
        ) {
            let share = Thousandths(share);
            let plan = plan(&members, share);
            let ejected = members.iter().filter(|member| member.ejected_until.is_some()).count();
            let left = ejected - plan.released.len();
            prop_assert!(left * 1000 <= members.len() * share.0 as usize);
            prop_assert!(members.len() != 1 || left == 0);
            // Nobody comes back for nothing.
            prop_assert!(plan.released.is_empty() || left == cap(members.len(), share));
        }

        #[test]
        fn somebody_is_used_unless_the_share_is_all(
            members in proptest::collection::vec(any_member(), 1..40), share in 0u32..1000
        ) {
            let plan = plan(&members, Thousandths(share));
            let is_pending = members.iter().any(|member| member.pending);
            prop_assert!(is_pending || plan.usable.contains(&true));
        }

        #[test]
        fn who_is_well_is_used_and_who_is_pending_is_not(
            members in proptest::collection::vec(any_member(), 0..40), share in 0u32..=1000
        ) {
            let plan = plan(&members, Thousandths(share));
            for (member, used) in members.iter().zip(&plan.usable) {
                let well = !member.unhealthy && member.ejected_until.is_none();
                prop_assert!(!member.pending || !used);
                prop_assert!(member.pending || !well || *used);
            }
            // Without panic nobody is used that checks say is unhealthy.
            if !plan.panic {
                let wrong = members.iter().zip(&plan.usable).any(|(m, used)| m.unhealthy && *used);
                prop_assert!(!wrong);
            }
        }
    }
}

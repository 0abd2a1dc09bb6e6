//! When which target is harmed and healed.

use std::time::Duration;

use serde::Serialize;

/// What happens to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It stops listening and resets its connections.
    Kill,
    /// The killed one is there again.
    Back,
    /// Another one takes longer for each answer.
    Slow,
    /// The slow one is as fast as before.
    Normal,
}

/// The stretch until the first event, and the one after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// Nothing has been harmed yet.
    Before,
    /// One target is gone.
    Killed,
    /// It is there again.
    Back,
    /// Another one is slow.
    Slow,
    /// It is fast again.
    Normal,
}

/// What begins each phase but the first, in sixtieths of the whole.
const BEGINNINGS: [(Event, Phase, u32); 4] = [
    (Event::Kill, Phase::Killed, 10),
    (Event::Back, Phase::Back, 25),
    (Event::Slow, Phase::Slow, 35),
    (Event::Normal, Phase::Normal, 50),
];

impl Phase {
    /// All phases, in their order.
    pub(super) const ALL: [Self; 5] = [
        Self::Before,
        Self::Killed,
        Self::Back,
        Self::Slow,
        Self::Normal,
    ];

    /// What has just happened, for a table.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Killed => "one killed",
            Self::Back => "it is back",
            Self::Slow => "another slow",
            Self::Normal => "it is fast again",
        }
    }
}

/// The times of the events, from the first measured request on. They keep their proportions whatever
/// the length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    length: Duration,
}

impl Schedule {
    /// One of this length.
    pub(super) const fn new(length: Duration) -> Self {
        Self { length }
    }

    /// When the last request has been due.
    pub(super) fn length(self) -> Duration {
        self.length
    }

    /// The events with their times, in order.
    pub(super) fn events(self) -> [(Event, Duration); 4] {
        BEGINNINGS.map(|(event, _, sixtieths)| (event, self.at(sixtieths)))
    }

    /// The phases with their first moment and the first one after them.
    pub(super) fn phases(self) -> [(Phase, Duration, Duration); 5] {
        Phase::ALL.map(|phase| {
            let begins = |(_, begun, _): &(Event, Phase, u32)| *begun == phase;
            let position = BEGINNINGS.iter().position(begins);
            let start = position.map_or(0, |position| BEGINNINGS[position].2);
            let next = position.map_or(0, |position| position + 1);
            let end = BEGINNINGS.get(next).map_or(60, |(_, _, start)| *start);
            (phase, self.at(start), self.at(end))
        })
    }

    fn at(self, sixtieths: u32) -> Duration {
        self.length * sixtieths / 60
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(value: u64) -> Duration {
        Duration::from_secs(value)
    }

    #[test]
    fn a_minute_is_as_the_issue_has_it() {
        let events = Schedule::new(seconds(60)).events();
        let expected = [
            (Event::Kill, seconds(10)),
            (Event::Back, seconds(25)),
            (Event::Slow, seconds(35)),
            (Event::Normal, seconds(50)),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_short_form_keeps_the_proportions() {
        let times = Schedule::new(seconds(12))
            .events()
            .map(|(_, time)| time.as_secs());
        assert_eq!(times, [2, 5, 7, 10]);
    }

    #[test]
    fn phases_follow_each_other_without_a_gap() {
        let schedule = Schedule::new(Duration::from_millis(13_337));
        let phases = schedule.phases();
        assert_eq!(phases.map(|(phase, ..)| phase), Phase::ALL);
        assert_eq!(phases[0].1, Duration::ZERO);
        assert_eq!(phases[4].2, schedule.length());
        for pair in phases.windows(2) {
            assert_eq!(pair[0].2, pair[1].1);
        }
        let starts: Vec<_> = phases[1..].iter().map(|(_, start, _)| *start).collect();
        assert_eq!(starts, schedule.events().map(|(_, time)| time));
    }
}

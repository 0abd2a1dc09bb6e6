//! Taking one value after the other from the file into the model, within bounds.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use edgewright_script::diagnostic::{Diagnostic, Diagnostics};
use ipnet::IpNet;
use toml::Spanned;

use super::error::Source;
use super::units::{Count, NoneOrCount, NoneOrTime, Size, Time};

const LEAST: Duration = Duration::from_millis(1);

/// The longest time that any key takes. Longer ones are mistakes, and some would overflow a
/// clock when they are added to now.
const MOST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Any time, "none at all" included.
pub(super) const OR_ZERO: RangeInclusive<Duration> = Duration::ZERO..=MOST;

/// Any time but none.
pub(super) const POSITIVE: RangeInclusive<Duration> = LEAST..=MOST;

/// Collects what is wrong, so that a user sees all of it at once.
pub(super) struct Checks<'a> {
    source: Source<'a>,
    found: Vec<Diagnostic>,
}

impl<'a> Checks<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self {
            source,
            found: Vec::new(),
        }
    }

    /// All that was noted, in the order of the file.
    pub(super) fn into_result(mut self) -> Result<(), Diagnostics> {
        self.found.sort_by_key(|one| {
            let place = one.place.as_ref();
            place.map(|place| (place.line, place.column))
        });
        if self.found.is_empty() {
            Ok(())
        } else {
            Err(Diagnostics(self.found))
        }
    }

    /// Notes an error that is about no text in particular.
    pub(super) fn error_without_place(&mut self, error: Diagnostic) {
        self.found.push(error);
    }

    /// Notes an error about the bytes `span` of the file.
    pub(super) fn error(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.found.push(self.source.error(span, message));
    }

    /// As [`Checks::error`], with what to do.
    pub(super) fn error_with_help(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.found.push(self.source.error(span, message).help(help));
    }

    /// Puts a given time into `slot`, if it lies in `range`.
    pub(super) fn time(
        &mut self,
        slot: &mut Duration,
        key: &str,
        given: Option<Spanned<Time>>,
        range: RangeInclusive<Duration>,
    ) {
        if let Some(given) = given {
            let bounds = (Time(*range.start()), Time(*range.end()));
            let Time(time) = *given.get_ref();
            if range.contains(&time) {
                *slot = time;
            } else {
                self.out_of_range(key, &given, bounds);
            }
        }
    }

    /// Puts a given size in bytes into `slot`, if it lies in `range`.
    pub(super) fn size(
        &mut self,
        slot: &mut usize,
        key: &str,
        given: Option<Spanned<Size>>,
        range: RangeInclusive<u64>,
    ) {
        if let Some(given) = given {
            let bounds = (Size(*range.start()), Size(*range.end()));
            match usize::try_from(given.get_ref().0) {
                Ok(size) if range.contains(&given.get_ref().0) => *slot = size,
                _ => self.out_of_range(key, &given, bounds),
            }
        }
    }

    /// Puts a given number into `slot`, if it lies in `range`.
    pub(super) fn count<T: TryFrom<u64>>(
        &mut self,
        slot: &mut T,
        key: &str,
        given: Option<Spanned<Count>>,
        range: RangeInclusive<u64>,
    ) {
        if let Some(given) = given {
            let bounds = (Count(*range.start()), Count(*range.end()));
            match T::try_from(given.get_ref().0) {
                Ok(count) if range.contains(&given.get_ref().0) => *slot = count,
                _ => self.out_of_range(key, &given, bounds),
            }
        }
    }

    /// As [`Checks::time`], where there may be none.
    pub(super) fn time_or_none(
        &mut self,
        slot: &mut Option<Duration>,
        key: &str,
        given: Option<Spanned<NoneOrTime>>,
        range: RangeInclusive<Duration>,
    ) {
        let Some(given) = given else { return };
        *slot = match *given.get_ref() {
            NoneOrTime::None => None,
            NoneOrTime::Time(time) => {
                let mut taken = Duration::ZERO;
                let time = Some(Spanned::new(given.span(), Time(time)));
                self.time(&mut taken, key, time, range);
                Some(taken)
            }
        };
    }

    /// As [`Checks::count`], where there may be none.
    pub(super) fn count_or_none(
        &mut self,
        slot: &mut Option<usize>,
        key: &str,
        given: Option<Spanned<NoneOrCount>>,
        range: RangeInclusive<u64>,
    ) {
        let Some(given) = given else { return };
        *slot = match *given.get_ref() {
            NoneOrCount::None => None,
            NoneOrCount::Count(count) => {
                let mut taken = 0;
                let count = Some(Spanned::new(given.span(), Count(count)));
                self.count(&mut taken, key, count, range);
                Some(taken)
            }
        };
    }

    fn out_of_range<T: Display>(&mut self, key: &str, given: &Spanned<T>, (least, most): (T, T)) {
        self.error(
            &given.span(),
            format!(
                "`{key}` must be between {least} and {most}, not {}",
                given.get_ref()
            ),
        );
    }

    /// An IP address with a port; `port` stands in the example of the error.
    pub(super) fn address(&mut self, given: &Spanned<String>, port: u16) -> Option<SocketAddr> {
        let text = given.get_ref();
        let address = text.parse().ok();
        if address.is_none() {
            let ip = text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
            let example = SocketAddr::new(ip, port);
            self.error_with_help(
                &given.span(),
                format!("{text:?} is no address"),
                format!("write IP:port, such as \"{example}\""),
            );
        }
        address
    }

    /// As [`Checks::address`], with a port that others can know beforehand.
    pub(super) fn fixed_address(
        &mut self,
        given: &Spanned<String>,
        port: u16,
    ) -> Option<SocketAddr> {
        let address = self.address(given, port)?;
        if address.port() == 0 {
            self.error(&given.span(), "the port can't be 0: nobody would know it");
            return None;
        }
        Some(address)
    }

    /// An absolute folder.
    pub(super) fn folder(&mut self, given: &Spanned<String>) -> Option<PathBuf> {
        let folder = PathBuf::from(given.get_ref());
        if !folder.is_absolute() {
            self.error(
                &given.span(),
                format!("{:?} is no absolute path", given.get_ref()),
            );
            return None;
        }
        Some(folder)
    }

    /// A network, or a single address.
    pub(super) fn network(&mut self, given: &Spanned<String>) -> Option<IpNet> {
        let text = given.get_ref();
        let parsed = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match parsed {
            // "10.1.2.3/8" trusts ten thousand times more than its author may think.
            Ok(network) if network.trunc() != network => {
                self.error_with_help(
                    &given.span(),
                    format!("{text:?} has bits outside its prefix"),
                    format!(
                        "write \"{}\" for the network or \"{}\" for the address",
                        network.trunc(),
                        network.addr()
                    ),
                );
                None
            }
            Ok(network) => Some(network),
            Err(_) => {
                self.error_with_help(
                    &given.span(),
                    format!("{text:?} is no network"),
                    "write \"10.0.0.0/8\", \"fd00::/8\" or one address",
                );
                None
            }
        }
    }
}

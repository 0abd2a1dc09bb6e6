//! Does each way do its job? A fast wrong answer is no result.

use anyhow::{Context, Result, ensure};

use super::cases::{self, CLIENT, Case};
use super::job::{Job, Way, Work};
use super::work;

/// An error unless this way does the job as expected, with good requests and bad ones.
pub(super) fn in_memory(job: Job, way: Way) -> Result<()> {
    let mut cases = cases::measured(job);
    cases.extend(cases::others(job));
    same(&mut *work(job, way, &cases)?, job, &cases)
        .with_context(|| format!("{}, {}", job.name(), way.name()))
}

fn same(work: &mut dyn Work, job: Job, cases: &[Case]) -> Result<()> {
    let mut calls = 0;
    for (number, case) in cases.iter().enumerate() {
        // Twice: the second call finds what the first has kept and set.
        for _ in 0..2 {
            let said = work.call(number)?;
            ensure!(
                said == case.said,
                "request {number}: {said:?}, not {:?}",
                case.said
            );
            calls += 1;
        }
        let client = work.client(number);
        let expected = (job == Job::HeaderSet).then_some(CLIENT);
        ensure!(
            client.as_deref() == expected,
            "request {number}: the upstream would see {client:?} as client"
        );
    }
    let counted = work.counted()?;
    let expected = if job == Job::Counter { calls } else { 0 };
    ensure!(
        counted == expected,
        "the counter stands at {counted} after {expected} calls"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::job::Said;

    #[test]
    fn every_way_does_every_job() {
        for job in Job::ALL {
            for way in Way::of(job) {
                in_memory(job, way).unwrap();
            }
        }
    }

    #[test]
    fn who_does_something_else_is_found_out() {
        struct Wrong(Said, Option<String>, i64);
        impl Work for Wrong {
            fn call(&mut self, _: usize) -> Result<Said> {
                Ok(self.0)
            }
            fn client(&self, _: usize) -> Option<String> {
                self.1.clone()
            }
            fn counted(&mut self) -> Result<i64> {
                Ok(self.2)
            }
        }
        let error = |job, mut wrong: Wrong| {
            let mut cases = cases::measured(job);
            cases.extend(cases::others(job));
            same(&mut wrong, job, &cases).unwrap_err().to_string()
        };
        let refusing = error(Job::Empty, Wrong(Said::Answer(403), None, 0));
        assert!(refusing.starts_with("request 0: "), "{refusing}");
        for job in [
            Job::Prefixes,
            Job::Table100,
            Job::Regex,
            Job::Hmac,
            Job::Jwt,
        ] {
            let lets_all_pass = error(job, Wrong(Said::Continue, None, 0));
            assert!(lets_all_pass.contains("Continue, not "), "{lets_all_pass}");
        }
        let silent = error(Job::HeaderSet, Wrong(Said::Continue, None, 0));
        assert!(silent.contains("as client"), "{silent}");
        let lazy = error(Job::Counter, Wrong(Said::Continue, None, 1));
        assert!(lazy.contains("after 128 calls"), "{lazy}");
    }
}

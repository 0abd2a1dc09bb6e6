//! `cargo bench -p edgewright-bench`: the jobs of hooks, by criterion, with baselines to compare with.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use edgewright_bench::jobs::{self, Job, Way};

// The allocator of `edgewright`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn all(criterion: &mut Criterion) {
    for job in Job::ALL {
        let mut group = criterion.benchmark_group(job.name());
        for way in Way::of(job) {
            let mut work = jobs::prepare(job, way).expect("the job is done as it should be");
            let mut requests = (0..jobs::requests()).cycle();
            group.bench_function(BenchmarkId::from_parameter(way.name()), |bencher| {
                bencher.iter(|| {
                    let request = requests.next().unwrap_or(0);
                    black_box(work.call(request)).expect("the hook runs")
                });
            });
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);

//! What is measured, and how it is printed.

use std::time::Duration;

/// What one slice of a measurement gave.
pub(crate) struct Slice {
    pub(crate) time: Duration,
    pub(crate) latencies: Vec<Duration>,
    /// Processor time that the service's process used.
    pub(crate) processor: Duration,
    /// Resident memory of the process at the end, in KiB.
    pub(crate) memory: u64,
}

/// All slices of all measurements of a run.
#[derive(Default)]
pub(crate) struct Table(Vec<(String, Vec<Slice>)>);

impl Table {
    pub(crate) fn add(&mut self, name: &str, slice: Slice) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, slices)) => slices.push(slice),
            None => self.0.push((name.to_owned(), vec![slice])),
        }
    }

    /// Prints a line a measurement; rates also beside those of the measurements `beside`.
    pub(crate) fn print(&self, beside: &[&str]) {
        let rate = |name: &str| {
            let (_, slices) = self.0.iter().find(|(known, _)| known == name).unwrap();
            sum(slices).rate
        };
        let bases: Vec<_> = beside.iter().map(|name| (name, rate(name))).collect();
        println!(
            "\n{:26} {:>10} {:>9} {:>9} {:>11} {:>10}",
            "", "requests/s", "p50", "p99", "CPU/request", "memory"
        );
        for (name, slices) in &self.0 {
            let line = sum(slices);
            print!(
                "{name:26} {:>10.0} {:>9} {:>9} {:>11} {:>6} MiB",
                line.rate,
                short(line.p50),
                short(line.p99),
                short(line.processor),
                slices.last().unwrap().memory / 1024,
            );
            for (base, rate) in &bases {
                print!("   {:.2} of {base}", line.rate / rate);
            }
            println!();
        }
    }
}

struct Line {
    rate: f64,
    p50: Duration,
    p99: Duration,
    processor: Duration,
}

fn sum(slices: &[Slice]) -> Line {
    let mut latencies: Vec<Duration> =
        slices.iter().flat_map(|slice| slice.latencies.iter().copied()).collect();
    latencies.sort_unstable();
    let count = latencies.len();
    let time: Duration = slices.iter().map(|slice| slice.time).sum();
    let processor: Duration = slices.iter().map(|slice| slice.processor).sum();
    Line {
        rate: count as f64 / time.as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
        processor: processor / u32::try_from(count).unwrap(),
    }
}

/// A percentile of sorted times.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// A time in a few characters.
pub(crate) fn short(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1000.0) }
}

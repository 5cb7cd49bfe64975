//! Measures the code that an input reaches, if the compiler counts edges (SanitizerCoverage, inline 8-bit counters).
//!
//! Instrumented code registers its counters through one C function, which is defined here. Without instrumentation
//! there are no counters, and no input counts as new. `make fuzz` passes the options, which the stable compiler
//! accepts:
//!
//! ```text
//! -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
//! ```
//! Source: LLVM, "SanitizerCoverage". Counts are divided into eight classes, as in AFL and libFuzzer.
#![allow(unsafe_code, reason = "counters are memory that the compiler laid out")]

use std::sync::Mutex;

static REGIONS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Registers the counters of a module, `start..end`. Instrumented code calls this once per module before `main`.
// SAFETY: the name belongs to LLVM's interface, and no other crate of this program defines it.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    if let Ok(mut regions) = REGIONS.lock()
        && start < end
    {
        regions.push((start as usize, end as usize - start as usize));
    }
}

/// For each edge, a bit for each class of counts that inputs have reached.
#[derive(Default)]
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    /// Returns whether the compiler inserted counters of edges.
    pub fn exists() -> bool {
        REGIONS.lock().is_ok_and(|regions| !regions.is_empty())
    }

    pub fn clear() {
        Self::each(|_, counters| counters.fill(0));
    }

    /// Records the counts since the last [`Coverage::clear`], and returns whether any class is new.
    pub fn is_new(&mut self) -> bool {
        let seen = &mut self.seen;
        let mut new = false;
        Self::each(|first, counters| {
            if seen.len() < first + counters.len() {
                seen.resize(first + counters.len(), 0);
            }
            // Most edges are not reached, so eight counters are skipped at a time.
            for (at, eight) in counters.chunks(8).enumerate().filter(|(_, eight)| eight.iter().any(|&n| n != 0)) {
                for (n, &count) in eight.iter().enumerate().filter(|(_, count)| **count != 0) {
                    let class = match count {
                        1..=3 => 1 << (count - 1),
                        4..=7 => 1 << 3,
                        8..=15 => 1 << 4,
                        16..=31 => 1 << 5,
                        32..=127 => 1 << 6,
                        _ => 1 << 7,
                    };
                    let known = &mut seen[first + 8 * at + n];
                    new |= *known & class == 0;
                    *known |= class;
                }
            }
        });
        new
    }

    /// Returns the number of edges reached, and the number of all edges.
    pub fn edges(&self) -> (usize, usize) {
        let mut all = 0;
        Self::each(|_, counters| all += counters.len());
        (self.seen.iter().filter(|&&classes| classes != 0).count(), all)
    }

    fn each(mut f: impl FnMut(usize, &mut [u8])) {
        let Ok(regions) = REGIONS.lock() else { return };
        let mut first = 0;
        for &(start, len) in regions.iter() {
            // SAFETY: the compiler registered these bytes, which live as long as the program. While this thread reads
            // the counters, no other thread runs the inputs' code. A count that another thread loses is harmless.
            let counters = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, len) };
            f(first, counters);
            first += len;
        }
    }
}

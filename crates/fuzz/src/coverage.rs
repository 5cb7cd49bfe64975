//! Which code an input reaches, where the compiler was asked to count edges (SanitizerCoverage, 8-bit counters inline).
//!
//! Such code announces its counters through one C function, which is defined here; code that was not compiled so has
//! none, and then no input is ever new. `make fuzz` passes the options, which the stable compiler takes:
//!
//! ```text
//! -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
//! ```
//! Source: LLVM, "SanitizerCoverage". How often an edge ran counts in eight classes, as in AFL and libFuzzer.
#![allow(unsafe_code, reason = "counters are memory that the compiler laid out")]

use std::sync::Mutex;

static REGIONS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called once a module before `main`, with the first and one past the last of its counters.
// SAFETY: no other crate of this program defines the name, which is that of LLVM's interface.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    if let Ok(mut regions) = REGIONS.lock()
        && start < end
    {
        regions.push((start as usize, end as usize - start as usize));
    }
}

/// The classes of counts that were seen at each edge.
#[derive(Default)]
pub struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    /// Whether the compiler counts.
    pub fn exists() -> bool {
        REGIONS.lock().is_ok_and(|regions| !regions.is_empty())
    }

    /// Sets all counters to 0.
    pub fn clear() {
        Self::each(|_, counters| counters.fill(0));
    }

    /// Takes in what was counted since the last [`Coverage::clear`]; true where something is new.
    pub fn is_new(&mut self) -> bool {
        let seen = &mut self.seen;
        let mut new = false;
        Self::each(|first, counters| {
            if seen.len() < first + counters.len() {
                seen.resize(first + counters.len(), 0);
            }
            // Most edges are not reached; eight at a time cost one comparison.
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

    /// Edges that were reached, of all.
    pub fn edges(&self) -> (usize, usize) {
        let mut all = 0;
        Self::each(|_, counters| all += counters.len());
        (self.seen.iter().filter(|&&classes| classes != 0).count(), all)
    }

    fn each(mut f: impl FnMut(usize, &mut [u8])) {
        let Ok(regions) = REGIONS.lock() else { return };
        let mut first = 0;
        for &(start, len) in regions.iter() {
            // SAFETY: the compiler announced these bytes, which live as long as the program. Only the thread that runs
            // the inputs executes code that counts while it looks at the counters, and a count that another thread
            // loses harms nothing.
            let counters = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, len) };
            f(first, counters);
            first += len;
        }
    }
}

//! The input data, and the expected outputs.
//!
//! The input of a rank at element `k` is `a(rank) xor b(k)` over a few bits. The input is computed on demand, and
//! differs between ranks and elements. Sums are exact in f32. The reduction over any number of ranks depends only on
//! the number of ranks with each value of `a`. A wavelet of 16-bit integers carries two odd multiples of the input.
//! These overflow, so that a carry from the lower half into the upper half would make a wrong result.

use unisono_base::{interrupt::poll, mix};
use unisono_collective::{Collective, Dtype, Operator, Source};

pub struct Data {
    c: Collective,
    bits: u32,
    float: bool,
    /// True if a wavelet carries two 16-bit integers.
    halves: bool,
    /// Number of ranks with each value of `a`.
    counts: Vec<u64>,
    /// The value of `a` for each rank; `by_element` has `b` for each element. The hot loop reads every element of every
    /// rank.
    by_rank: Vec<u16>,
    by_element: Vec<u16>,
}

/// Returns the lower and the upper half of a word.
#[expect(clippy::cast_possible_truncation, reason = "each half is a word of 16 bits")]
fn both_halves(word: u32) -> [u16; 2] {
    [word as u16, (word >> 16) as u16]
}

/// Applies a function to both 16-bit halves of two words.
fn in_each_half(x: u32, y: u32, of: impl Fn(u16, u16) -> u16) -> u32 {
    let ([x_lower, x_upper], [y_lower, y_upper]) = (both_halves(x), both_halves(y));
    u32::from(of(x_upper, y_upper)) << 16 | u32::from(of(x_lower, y_lower))
}

impl Data {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bits of a mixed number, of a wavelet, or of a sum that wraps as 32 bits do"
    )]
    pub fn new(c: Collective) -> Self {
        // Sums over all ranks stay below 2^24, so f32 can represent each of them exactly.
        let bits = (24 - (u64::from(c.ranks)).next_power_of_two().trailing_zeros()).clamp(1, 12);
        let mut data = Self {
            c,
            bits,
            float: c.dtype == Dtype::F32,
            halves: c.dtype == Dtype::I16,
            counts: vec![0; 1 << bits],
            by_rank: Vec::new(),
            by_element: Vec::new(),
        };
        for rank in 0..c.ranks {
            let a = data.a(rank);
            data.counts[a as usize] += 1;
            data.by_rank.push(a as u16);
        }
        let elements = (0..c.ranks).map(|r| c.input_len(r)).max().unwrap_or(0);
        data.by_element = (0..elements).map(|k| data.b(k) as u16).collect();
        data
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "bits of a mixed number, of a wavelet, or of a sum that wraps as 32 bits do"
    )]
    fn a(&self, rank: u32) -> u32 {
        (mix(u64::from(rank) + 1) >> 20) as u32 & ((1 << self.bits) - 1)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "bits of a mixed number, of a wavelet, or of a sum that wraps as 32 bits do"
    )]
    fn b(&self, element: u32) -> u32 {
        (mix(u64::from(element) ^ 0x9e37_79b9_7f4a_7c15) >> 20) as u32 & ((1 << self.bits) - 1)
    }

    /// Returns a number as the bits of a wavelet. Products in f32 use only 1 and -1, so they stay exact.
    fn wavelet(&self, value: u32) -> u32 {
        match (self.float, self.c.operator) {
            (true, Operator::Prod) => (if value.count_ones().is_multiple_of(2) { 1.0f32 } else { -1.0 }).to_bits(),
            (true, _) => (value as f32).to_bits(),
            _ if self.halves => in_each_half(value | value << 16, 0x0003_d001, u16::wrapping_mul),
            _ => value,
        }
    }

    fn input(&self, rank: u32, element: u32) -> u32 {
        self.wavelet(u32::from(self.by_rank[rank as usize] ^ self.by_element[element as usize]))
    }

    #[expect(
        clippy::cast_sign_loss,
        reason = "bits of a mixed number, of a wavelet, or of a sum that wraps as 32 bits do"
    )]
    fn combine(&self, x: u32, y: u32) -> u32 {
        if self.float {
            let (a, b) = (f32::from_bits(x), f32::from_bits(y));
            let r = match self.c.operator {
                Operator::Prod => a * b,
                Operator::Min => a.min(b),
                Operator::Max => a.max(b),
                _ => a + b,
            };
            return r.to_bits();
        }
        if self.halves {
            let signed =
                |of: fn(i16, i16) -> i16| move |a: u16, b: u16| of(a.cast_signed(), b.cast_signed()).cast_unsigned();
            match self.c.operator {
                Operator::Sum => return in_each_half(x, y, u16::wrapping_add),
                Operator::Prod => return in_each_half(x, y, u16::wrapping_mul),
                Operator::Min => return in_each_half(x, y, signed(i16::min)),
                Operator::Max => return in_each_half(x, y, signed(i16::max)),
                _ => {}
            }
        }
        match self.c.operator {
            Operator::Prod => x.wrapping_mul(y),
            Operator::Min => (x as i32).min(y as i32) as u32,
            Operator::Max => (x as i32).max(y as i32) as u32,
            Operator::And => x & y,
            Operator::Or => x | y,
            Operator::Xor => x ^ y,
            _ => x.wrapping_add(y),
        }
    }

    /// Fills `into` with the inputs of a rank, from element `element` on.
    pub fn fill(&self, rank: u32, element: u32, into: &mut [u32]) {
        let (a, b) = (self.by_rank[rank as usize], &self.by_element[element as usize..][..into.len()]);
        if self.float && self.c.operator != Operator::Prod {
            into.iter_mut().zip(b).for_each(|(x, b)| *x = f32::from(a ^ b).to_bits());
        } else {
            into.iter_mut().zip(b).for_each(|(x, b)| *x = self.wavelet(u32::from(a ^ b)));
        }
    }

    /// Reduces `y` into `x`, element by element.
    pub fn reduce(&self, x: &mut [u32], y: &[u32]) {
        if self.float && self.c.operator == Operator::Sum {
            // This is the usual case. The compiler vectorizes its loop.
            x.iter_mut().zip(y).for_each(|(x, y)| *x = (f32::from_bits(*x) + f32::from_bits(*y)).to_bits());
        } else {
            x.iter_mut().zip(y).for_each(|(x, y)| *x = self.combine(*x, *y));
        }
    }

    /// Returns the reduction of input element `element` over a set of ranks, of which `counts[a]` have the value `a`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bits of a mixed number, of a wavelet, or of a sum that wraps as 32 bits do"
    )]
    fn reduction(&self, counts: &[u64], element: u32) -> u32 {
        poll();
        let b = self.b(element);
        let mut all = counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(a, &n)| (self.wavelet(a as u32 ^ b), n));
        match (self.c.operator, self.float) {
            (Operator::Sum, true) => {
                (all.map(|(v, n)| f64::from(f32::from_bits(v)) * n as f64).sum::<f64>() as f32).to_bits()
            }
            (Operator::Sum, false) if self.halves => {
                let times = |n: u64| move |v: u16, _| v.wrapping_mul(n as u16);
                all.fold(0, |s, (v, n)| self.combine(s, in_each_half(v, 0, times(n))))
            }
            (Operator::Prod, false) if self.halves => {
                let power = |n: u64| move |v: u16, _| v.wrapping_pow(n as u32);
                all.fold(0x0001_0001, |s, (v, n)| self.combine(s, in_each_half(v, 0, power(n))))
            }
            (Operator::Sum, false) => all.fold(0, |s, (v, n)| s.wrapping_add(v.wrapping_mul(n as u32))),
            (Operator::Prod, true) => {
                let odd: u64 = all.map(|(v, n)| if f32::from_bits(v) < 0.0 { n } else { 0 }).sum();
                (if odd.is_multiple_of(2) { 1.0f32 } else { -1.0 }).to_bits()
            }
            (Operator::Prod, false) => all.fold(1, |s, (v, n)| s.wrapping_mul(v.wrapping_pow(n as u32))),
            (Operator::Xor, _) => all.fold(0, |s, (v, n)| if n % 2 == 1 { s ^ v } else { s }),
            _ => {
                let first = all.next().map_or(0, |(v, _)| v);
                all.fold(first, |s, (v, _)| self.combine(s, v))
            }
        }
    }

    /// Compares all required outputs with the expected ones, and describes the first wrong output; `None` if all are
    /// right.
    pub fn check<'a>(&self, output: impl Fn(u32) -> &'a [u32]) -> Option<String> {
        let whole: Vec<u32> = if self.c.kind.reduces() {
            let len = (0..self.c.ranks.min(1)).map(|r| self.c.input_len(r)).max().unwrap_or(0);
            (0..len).map(|k| self.reduction(&self.counts, k)).collect()
        } else {
            Vec::new()
        };
        let mut before = vec![0u64; self.counts.len()];
        for rank in 0..self.c.ranks {
            before[self.a(rank) as usize] += 1;
            let held = output(rank);
            for required in self.c.required(rank) {
                for k in 0..required.span.len {
                    poll();
                    let element = required.input_start + k;
                    let want = match required.source {
                        Source::Copy { rank } => self.input(rank, element),
                        Source::Reduction { ranks } if ranks == self.c.ranks => whole[element as usize],
                        Source::Reduction { .. } => self.reduction(&before, element),
                        Source::AtLeastOnce { .. } => continue,
                    };
                    let got = held[(required.span.start + k) as usize];
                    if got != want {
                        let show = |v: u32| match (self.float, self.halves) {
                            (true, _) => f32::from_bits(v).to_string(),
                            (_, true) => format!("{:?}", both_halves(v).map(u16::cast_signed)),
                            _ => (v as i32).to_string(),
                        };
                        let at = required.span.start + k;
                        return Some(format!("out[{at}] of rank {rank} is {}, not {}", show(got), show(want)));
                    }
                }
            }
        }
        None
    }
}

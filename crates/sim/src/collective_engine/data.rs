//! Values of a run: each switch reduces its inputs in the order of ports, and forwards the result by its registers.
//!
//! Values are drawn from rank and element. Floating-point values round at every step, so that another order gives other
//! bits. The results are compared with arithmetic without the network: exactly for integers, minima, maxima, broadcasts
//! and scans, otherwise within the rounding error of the number of operations.

use std::ops::Range;

use half::{bf16, f16};
use unisono_base::{interrupt::poll, mix, narrow};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::switches::{Configured, ENGINE, Embedding, NONE, ports};
use unisono_machine::in_network::{Layout, MEMORY};
use unisono_schedule::interpret::Element;

/// Comparison of the computed outputs with plain arithmetic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataReport {
    pub result_correct: bool,
    /// Description of the first output that differs from plain arithmetic; `None` if there is none.
    pub mismatch: Option<String>,
    /// The number of vector elements that were computed, summed over all embeddings (trees or chains). If ranks times
    /// elements exceed a limit, only the first elements of each embedding are computed, which represent the others.
    pub elements: u32,
    /// Digest of the output bits of the computed elements, summed over all ranks.
    pub digest: u64,
}

/// Returns the summand of one value in [`DataReport::digest`]; `place` is `rank << 32 | element`.
pub fn digest(place: u64, bits: u64) -> u64 {
    mix(mix(place) ^ bits)
}

/// The largest product of ranks and elements that is computed, except that at least one element of each embedding is
/// computed. Registers treat all elements of an embedding alike.
const MOST_VALUES: u64 = 1 << 24;
/// Greatest number of values that the switches hold at the same time.
const AT_ONCE: usize = 1 << 24;

/// A value that switches reduce.
pub trait Sample: Element {
    /// Unit of rounding; 0 if values do not round.
    const EPSILON: f64;
    fn of(bits: u64, operator: Operator) -> Self;
    fn real(self) -> f64;
    fn bits(self) -> u64;
}

macro_rules! float {
    ($t:ty, $epsilon:expr, $from:expr, $to:expr) => {
        impl Sample for $t {
            const EPSILON: f64 = $epsilon;

            fn of(bits: u64, operator: Operator) -> Self {
                let part = (bits >> 40) as f64 / f64::from(1 << 24);
                // Factors are near 1, so that a product of millions of factors stays near 1.
                let value = if operator == Operator::Prod {
                    (1.0 + (part - 0.5) * 1e-6) * if bits & 1 == 0 { 1.0 } else { -1.0 }
                } else {
                    (part - 0.5) * 8.0
                };
                $from(value)
            }

            fn real(self) -> f64 {
                $to(self)
            }

            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
        }
    };
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest, as the machine does")]
fn single(value: f64) -> f32 {
    value as f32
}

float!(f32, 5.97e-8, single, f64::from);
float!(f64, 1.12e-16, |v: f64| v, |v: f64| v);
float!(f16, 4.89e-4, f16::from_f64, f16::to_f64);
float!(bf16, 3.91e-3, bf16::from_f64, bf16::to_f64);

macro_rules! integer {
    ($t:ty) => {
        // An integer takes all bits, cut to the length of the type.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        impl Sample for $t {
            const EPSILON: f64 = 0.0;

            fn of(bits: u64, _: Operator) -> Self {
                bits as $t
            }

            fn real(self) -> f64 {
                self as f64
            }

            fn bits(self) -> u64 {
                self as u64
            }
        }
    };
}

integer!(i16);
integer!(i32);
integer!(i64);

/// Returns the input of a rank at an element.
pub fn input<T: Sample>(rank: u32, element: u32, operator: Operator) -> T {
    T::of(mix(u64::from(rank) << 32 | u64::from(element) | 1 << 63), operator)
}

fn fill<T: Sample>(values: &mut [T], rank: u32, element: u32, operator: Operator) {
    (element..).zip(values).for_each(|(k, x)| *x = input(rank, k, operator));
}

pub fn flow(layout: &Layout, configured: &Configured) -> DataReport {
    match configured.collective.dtype {
        Dtype::F32 => of::<f32>(layout, configured),
        Dtype::F64 => of::<f64>(layout, configured),
        Dtype::F16 => of::<f16>(layout, configured),
        Dtype::Bf16 => of::<bf16>(layout, configured),
        Dtype::I16 => of::<i16>(layout, configured),
        Dtype::I32 => of::<i32>(layout, configured),
        Dtype::I64 => of::<i64>(layout, configured),
    }
}

fn of<T: Sample>(layout: &Layout, configured: &Configured) -> DataReport {
    let c = &configured.collective;
    let share = MOST_VALUES / u64::from(c.ranks) / configured.embeddings.len().max(1) as u64;
    let share = narrow::<u32>(share.clamp(1, u64::from(u32::MAX)));
    let mut report = DataReport { result_correct: true, mismatch: None, elements: 0, digest: 0 };
    let mut rank_of = vec![u32::MAX; layout.switches() as usize];
    for (rank, &switch) in configured.ranks.iter().enumerate() {
        rank_of[switch as usize] = narrow::<u32>(rank);
    }
    for e in &configured.embeddings {
        let flows = e.elements.min(share);
        report.elements += flows;
        let chunk = narrow::<u32>((AT_ONCE / e.registers.len().max(1)).clamp(1, 1024));
        let mut run = Flow::<T>::new(layout, c, e, &rank_of);
        let mut from = 0;
        while from < flows {
            let len = chunk.min(flows - from);
            run.chunk(e.first + from, len as usize, &mut report);
            from += len;
        }
    }
    report
}

struct Flow<'a, T> {
    c: &'a Collective,
    /// The switches in the order of responses. Requests visit them in reverse order. Switches that the root does not
    /// reach are at the end.
    switches: Vec<At>,
    reached: usize,
    /// Inputs of each switch, in the order of ports, as indices of `switches`.
    inputs: Vec<u32>,
    requests: Vec<T>,
    responses: Vec<T>,
}

/// A switch of an embedding.
struct At {
    rank: u32,
    /// Range of the inputs in [`Flow::inputs`].
    inputs: Range<usize>,
    response: Response,
    receives: bool,
}

/// Source of the responses of a switch.
enum Response {
    Nothing,
    Engine,
    Memory,
    Switch(u32),
}

const FROM_MEMORY: u32 = u32::MAX;

impl<'a, T: Sample> Flow<'a, T> {
    fn new(layout: &Layout, c: &'a Collective, e: &Embedding, rank_of: &[u32]) -> Self {
        let places = e.places(layout.switches());
        let place = |switch, port| layout.peer(switch, port).map_or(FROM_MEMORY, |p| places[p.switch as usize]);
        let reduces = c.kind.reduces();
        let root = e
            .registers
            .iter()
            .position(|(_, r)| if reduces { r.request_output == NONE } else { r.response_input == MEMORY });
        // Switches are listed breadth first from the root.
        let mut order: Vec<u32> = root.iter().map(|&at| narrow::<u32>(at)).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            let (switch, r) = e.registers[at as usize];
            let below = if reduces { r.request_inputs } else { r.response_outputs };
            order.extend(ports(below & !(1 << MEMORY)).map(|port| place(switch, port)));
        }
        let reached = order.len();
        let mut index = vec![FROM_MEMORY; e.registers.len()];
        (0..).zip(&order).for_each(|(k, &at)| index[at as usize] = k);
        for at in 0..narrow::<u32>(index.len()) {
            if index[at as usize] == FROM_MEMORY {
                index[at as usize] = narrow::<u32>(order.len());
                order.push(at);
            }
        }
        let source = |switch, port| index.get(place(switch, port) as usize).copied().unwrap_or(FROM_MEMORY);
        let mut inputs = Vec::new();
        let switch = |&at: &u32| {
            let (switch, r) = e.registers[at as usize];
            let first = inputs.len();
            inputs.extend(ports(r.request_inputs).map(|port| source(switch, port)));
            let response = match r.response_input {
                NONE => Response::Nothing,
                ENGINE => Response::Engine,
                MEMORY => Response::Memory,
                port => Response::Switch(source(switch, port)),
            };
            let rank = rank_of[switch as usize];
            At { rank, inputs: first..inputs.len(), response, receives: r.receives() }
        };
        let switches = order.iter().map(switch).collect();
        Self { c, switches, reached, inputs, requests: Vec::new(), responses: Vec::new() }
    }

    fn chunk(&mut self, element: u32, len: usize, report: &mut DataReport) {
        let operator = self.c.operator;
        self.requests.resize(self.switches.len() * len, T::default());
        self.responses.resize(self.switches.len() * len, T::default());
        let mut own = vec![T::default(); len];
        for (at, switch) in self.switches[..self.reached].iter().enumerate().rev() {
            poll();
            for (n, &source) in self.inputs[switch.inputs.clone()].iter().enumerate() {
                let values = (source != FROM_MEMORY).then(|| &self.requests[source as usize * len..][..len]);
                match (n, values) {
                    (0, None) => fill(&mut own, switch.rank, element, operator),
                    (0, Some(values)) => own.copy_from_slice(values),
                    (_, None) => (element..)
                        .zip(&mut own)
                        .for_each(|(k, x)| *x = T::combine(operator, *x, input(switch.rank, k, operator))),
                    (_, Some(values)) => {
                        own.iter_mut().zip(values).for_each(|(x, &y)| *x = T::combine(operator, *x, y));
                    }
                }
            }
            if !switch.inputs.is_empty() {
                self.requests[at * len..][..len].copy_from_slice(&own);
            }
        }
        let expected = Expected::new(self.c, element, len);
        let mut chain = (self.c.kind == Kind::Scan).then(|| vec![T::default(); len]);
        let backwards = chain.is_some();
        for k in 0..self.reached {
            poll();
            // A scan checks ranks in ascending order, which is the order of requests.
            let at = if backwards { self.reached - 1 - k } else { k };
            let &At { rank, ref response, receives, .. } = &self.switches[at];
            match *response {
                Response::Engine => {
                    self.responses[at * len..][..len].copy_from_slice(&self.requests[at * len..][..len]);
                }
                Response::Memory => fill(&mut self.responses[at * len..][..len], rank, element, operator),
                Response::Nothing => continue,
                Response::Switch(above) => {
                    let above = above as usize * len;
                    self.responses.copy_within(above..above + len, at * len);
                }
            }
            if !receives {
                continue;
            }
            let got = &self.responses[at * len..][..len];
            if let Some(chain) = &mut chain {
                for (k, x) in (element..).zip(chain.iter_mut()) {
                    let own = input(rank, k, operator);
                    *x = if rank == 0 { own } else { T::combine(operator, *x, own) };
                }
            }
            for (n, &value) in got.iter().enumerate() {
                let place = u64::from(rank) << 32 | (element as usize + n) as u64;
                report.digest = report.digest.wrapping_add(digest(place, value.bits()));
                let fits = match &chain {
                    Some(chain) => value.bits() == chain[n].bits(),
                    None => expected.fits(n, value),
                };
                if !fits && report.result_correct {
                    report.result_correct = false;
                    report.mismatch = Some(format!(
                        "element {} of rank {rank} is {value:?}, and plain arithmetic gives {}",
                        element as usize + n,
                        chain.as_ref().map_or_else(|| expected.say(n), |chain| format!("{:?}", chain[n]))
                    ));
                }
            }
        }
    }
}

/// Output of every rank that receives a result, computed without the network. Not used for scans, whose ranks have
/// different results.
struct Expected<T> {
    /// Reductions in rank order, in the datatype itself. `real` has their double-precision values, each with the sum of
    /// magnitudes.
    values: Vec<T>,
    real: Vec<(f64, f64)>,
    rounds: f64,
}

impl<T: Sample> Expected<T> {
    fn new(c: &Collective, element: u32, len: usize) -> Self {
        let mut values = vec![T::default(); len];
        let mut real = vec![(0.0, 0.0); len];
        let ranks = match c.kind {
            Kind::Broadcast => c.root..c.root + 1,
            Kind::Scan => 0..0,
            _ => 0..c.ranks,
        };
        let product = c.operator == Operator::Prod;
        for rank in ranks.clone() {
            poll();
            let first = rank == ranks.start;
            for (n, k) in (0..len).zip(element..) {
                let x: T = input(rank, k, c.operator);
                let (value, (sum, size)) = (&mut values[n], &mut real[n]);
                *value = if first { x } else { T::combine(c.operator, *value, x) };
                let x = x.real();
                *sum = if first {
                    x
                } else if product {
                    *sum * x
                } else {
                    *sum + x
                };
                *size = if product { sum.abs() } else { *size + x.abs() };
            }
        }
        let rounding = matches!(c.operator, Operator::Sum | Operator::Prod) && ranks.len() > 1;
        Self { values, real, rounds: if rounding { f64::from(c.ranks) * T::EPSILON } else { 0.0 } }
    }

    fn fits(&self, n: usize, value: T) -> bool {
        if self.rounds == 0.0 {
            return value.bits() == self.values[n].bits();
        }
        let (sum, size) = self.real[n];
        (value.real() - sum).abs() <= self.rounds * size
    }

    fn say(&self, n: usize) -> String {
        if self.rounds == 0.0 { format!("{:?}", self.values[n]) } else { format!("{}", self.real[n].0) }
    }
}

//! Every endpoint model as one linear form in n, the bytes of a message. A *price* is a time, in ticks
//! ([`TICKS_PER_NS`]).
//!
//! A send occupies its sender's CPU and network interface, each for its own time. The message reaches the receiver
//! after a flight, and occupies the receiver's CPU and interface. The models differ only in these five times:
//!
//! | model | send, CPU | send, interface | flight | receive, CPU | receive, interface |
//! |---|---|---|---|---|---|
//! | hockney | 0 | alpha + n beta | 0 | alpha + n beta | the same |
//! | postal | alpha + n beta | the same | the same | 0 | 0 |
//! | pipelining-postal | alpha_r + n beta | the same | alpha_r + n beta + alpha_p | 0 | 0 |
//! | logp, logfp | o | g | o + L | o | g |
//! | loggp | o | g + (n-1) G | o + L | o + (n-1) G | g + (n-1) G |
//! | loggops | o + (n-1) O | g + (n-1) G | o + L | o + (n-1) max(O, G) | g + (n-1) G |
//!
//! The prices of the LogP family are those of LogGOPSim, which also charges a message's bytes at the receiver
//! ("LogGOPSim", Hoefler, Schneider, Lumsdaine, 2010); the postal models are those of "Recursive multiplying", sections
//! 2 and 3 (Eq. 1 and 3). In the Hockney model, a port transfers one message at a time in each direction. A message
//! occupies the ports of sender and receiver for its whole time, and no CPU. The price of its receive on the CPU is the
//! delay until the rank has the message. In LogfP, f messages leave without a gap, then one every g ("LogfP", Hoefler
//! et al., 2006).

use std::ops::Range;

use unisono_base::rounded;
use unisono_machine::{Endpoint, EndpointModel, MachineError, Parameters, Protocol};

/// The number of ticks in a nanosecond. Clocks count picoseconds, so that parameters such as 0.4 ns a byte are whole.
pub const TICKS_PER_NS: f64 = 1000.0;

pub fn seconds(ticks: u64) -> f64 {
    ticks as f64 / (TICKS_PER_NS * 1e9)
}

/// The ticks for which a send occupies the sender's CPU and network interface, and the ticks of the flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Send {
    pub cpu: u64,
    pub nic: u64,
    /// The time from the start of the send until the message arrives at the receiver.
    pub flight: u64,
}

/// The ticks for which an arrived message occupies the receiver's CPU and network interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Receive {
    pub cpu: u64,
    pub nic: u64,
}

/// The prices, in ticks, that an endpoint simulator needs.
pub trait Prices {
    fn send(&self, from: u32, to: u32, bytes: u64) -> Send;
    fn receive(&self, from: u32, to: u32, bytes: u64) -> Receive;
    /// Returns the ticks in which a rank reduces `bytes` bytes of operands.
    fn reduce(&self, rank: u32, bytes: u64) -> u64;
    fn calc(&self, amount: u64) -> u64 {
        amount
    }
    /// Returns the bytes of the largest eager message. The send of a longer message ends only when the receiver has
    /// received the message.
    fn eager_bytes(&self) -> u64;
    /// Returns true if a price of a message of `bytes` bytes may be negative, as a number modulo 2^64.
    fn may_wrap(&self, _bytes: u64) -> bool {
        false
    }
    /// Returns the ticks by which a network interface may run ahead of its gap: f g in LogfP, 0 in other models.
    fn gap_slack(&self) -> u64 {
        0
    }
    /// Returns true if noise lengthens the tasks of a rank.
    fn is_noisy(&self, _rank: u32) -> bool {
        true
    }
    /// Returns true if messages occupy CPUs. If false (Hockney), a rank computes while its ports transfer messages.
    fn uses_cpus(&self) -> bool {
        true
    }
    /// Returns true if a task that waits for a task on another CPU of its rank starts no earlier than the end of that
    /// task.
    fn ties_cpus(&self) -> bool {
        true
    }
}

impl<P: Prices + ?Sized> Prices for &P {
    fn send(&self, from: u32, to: u32, bytes: u64) -> Send {
        (**self).send(from, to, bytes)
    }

    fn receive(&self, from: u32, to: u32, bytes: u64) -> Receive {
        (**self).receive(from, to, bytes)
    }

    fn reduce(&self, rank: u32, bytes: u64) -> u64 {
        (**self).reduce(rank, bytes)
    }

    fn calc(&self, amount: u64) -> u64 {
        (**self).calc(amount)
    }

    fn eager_bytes(&self) -> u64 {
        (**self).eager_bytes()
    }

    fn may_wrap(&self, bytes: u64) -> bool {
        (**self).may_wrap(bytes)
    }

    fn gap_slack(&self) -> u64 {
        (**self).gap_slack()
    }

    fn is_noisy(&self, rank: u32) -> bool {
        (**self).is_noisy(rank)
    }

    fn uses_cpus(&self) -> bool {
        (**self).uses_cpus()
    }

    fn ties_cpus(&self) -> bool {
        (**self).ties_cpus()
    }
}

/// A time that is linear in the length of a message: `base + bytes * per_byte` ticks. The time is rounded up, so that
/// bounds in real numbers hold.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Line {
    base: f64,
    per_byte: f64,
}

impl Line {
    fn exact(self, bytes: u64) -> f64 {
        self.base + self.per_byte * bytes as f64
    }

    fn at(self, bytes: u64) -> u64 {
        let exact = self.exact(bytes);
        // A value that differs from a whole number only by rounding error becomes that number. Casts saturate. `base`
        // may be negative, because it does not include the first byte.
        let whole = exact.round();
        rounded(if (exact - whole).abs() <= whole.abs() * 1e-12 { whole } else { exact.ceil() })
    }
}

/// The prices of one model with one set of parameters, each linear in the bytes of a message or reduction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Linear {
    send_cpu: Line,
    send_nic: Line,
    flight: Line,
    receive_cpu: Line,
    receive_nic: Line,
    reduce: Line,
    eager_bytes: u64,
    gap_slack: u64,
    /// True if messages occupy CPUs. If false, messages occupy interfaces only, and the price of a receive on the CPU
    /// is a delay.
    uses_cpus: bool,
}

impl Linear {
    /// Returns the prices of a model; missing parameters count as 0.
    pub fn new(model: EndpointModel, p: &Parameters) -> Self {
        let ticks = |ns: Option<f64>| ns.unwrap_or(0.0) * TICKS_PER_NS;
        let line = |base: f64, per_byte: f64| Line { base, per_byte };
        // The first byte is included in `base`.
        let rest = |base: f64, per_byte: f64| Line { base: base - per_byte, per_byte };
        let (alpha, beta) = (ticks(p.alpha_ns), ticks(p.beta_ns_per_byte));
        let (latency, o, g) = (ticks(p.L_ns), ticks(p.o_ns), ticks(p.g_ns));
        let (big_g, big_o) = (ticks(p.G_ns_per_byte), ticks(p.O_ns_per_byte));
        let none = Line::default();
        let of = |send_cpu, send_nic, flight, receive_cpu, receive_nic| Self {
            send_cpu,
            send_nic,
            flight,
            receive_cpu,
            receive_nic,
            reduce: line(ticks(p.compute_ns), ticks(p.gamma_ns_per_byte)),
            eager_bytes: u64::MAX,
            gap_slack: 0,
            uses_cpus: model != EndpointModel::Hockney,
        };
        let whole = line(alpha, beta);
        match model {
            EndpointModel::Hockney => of(none, whole, none, whole, whole),
            EndpointModel::Postal => of(whole, whole, whole, none, none),
            EndpointModel::PipeliningPostal => {
                let (issue, latency) = (ticks(p.alpha_r_ns), ticks(p.alpha_p_ns));
                of(line(issue, beta), line(issue, beta), line(issue + latency, beta), none, none)
            }
            EndpointModel::LogP => of(line(o, 0.0), line(g, 0.0), line(o + latency, 0.0), line(o, 0.0), line(g, 0.0)),
            EndpointModel::LogfP => Self {
                gap_slack: rounded(f64::from(p.f_messages.unwrap_or(0)) * g),
                ..of(line(o, 0.0), line(g, 0.0), line(o + latency, 0.0), line(o, 0.0), line(g, 0.0))
            },
            EndpointModel::LogGP => {
                of(line(o, 0.0), rest(g, big_g), line(o + latency, 0.0), rest(o, big_g), rest(g, big_g))
            }
            EndpointModel::LogGOPS => Self {
                eager_bytes: p.S_bytes.unwrap_or(u64::MAX),
                ..of(rest(o, big_o), rest(g, big_g), line(o + latency, 0.0), rest(o, big_o.max(big_g)), rest(g, big_g))
            },
        }
    }

    pub fn send(&self, bytes: u64) -> Send {
        Send { cpu: self.send_cpu.at(bytes), nic: self.send_nic.at(bytes), flight: self.flight.at(bytes) }
    }

    pub fn receive(&self, bytes: u64) -> Receive {
        Receive { cpu: self.receive_cpu.at(bytes), nic: self.receive_nic.at(bytes) }
    }

    pub fn reduce(&self, bytes: u64) -> u64 {
        self.reduce.at(bytes)
    }

    pub fn uses_cpus(&self) -> bool {
        self.uses_cpus
    }

    pub fn reduce_ticks_per_byte(&self) -> f64 {
        self.reduce.per_byte
    }

    /// Returns the ticks, before rounding, from the start of a send until the receiver's CPU has processed the message.
    pub fn ticks_until_received(&self, bytes: u64) -> f64 {
        self.flight.exact(bytes).max(0.0) + self.receive_cpu.exact(bytes).max(0.0)
    }

    /// Returns the least ticks per sent byte, and per received byte, in messages of any length. Each is the larger of
    /// the ticks on the CPU and on the interface.
    pub fn ticks_per_byte(&self) -> (f64, f64) {
        let least = |cpu: Line, nic: Line| {
            let of = |line: Line| line.per_byte.min(line.base + line.per_byte);
            of(cpu).max(of(nic))
        };
        (least(self.send_cpu, self.send_nic), least(self.receive_cpu, self.receive_nic))
    }

    /// Returns prices that are lower bounds of two prices: of these for messages of any length, and of `other` for
    /// messages of at least `from` bytes.
    fn least(self, (from, other): (u64, Self)) -> Self {
        let line = |a: Line, b: Line| {
            // A line with the smaller slope is below both lines if it is below both at their shortest messages.
            let per_byte = a.per_byte.min(b.per_byte);
            let base = |line: Line, shortest: u64| line.base + (line.per_byte - per_byte) * shortest as f64;
            Line { base: base(a, 1).min(base(b, from)), per_byte }
        };
        Self {
            send_cpu: line(self.send_cpu, other.send_cpu),
            send_nic: line(self.send_nic, other.send_nic),
            flight: line(self.flight, other.flight),
            receive_cpu: line(self.receive_cpu, other.receive_cpu),
            receive_nic: line(self.receive_nic, other.receive_nic),
            reduce: line(self.reduce, other.reduce),
            ..self
        }
    }
}

/// The prices of a machine. Each level and each protocol may have its own prices.
#[derive(Clone, PartialEq, Debug)]
pub struct LevelPrices {
    /// The prices of each level, innermost first; the last entry has the prices between members of the outermost level.
    levels: Vec<Linear>,
    /// The protocols between members of the outermost level: the shortest message of each, shortest first, with its
    /// prices.
    protocols: Vec<(u64, Linear)>,
    /// For each level, innermost first, the number of ranks in one of its members, such as one node.
    sizes: Vec<u32>,
    /// The place of each rank; empty if the place of every rank k is k.
    places: Vec<u32>,
    /// True if messages may be faster than their prices ([`Endpoint::has_typical_prices`]).
    pub are_typical: bool,
}

impl LevelPrices {
    /// # Errors
    /// Returns an error if the machine lacks a parameter of the model.
    pub fn new(machine: &Endpoint, model: EndpointModel, ranks: u32) -> Result<Self, MachineError> {
        if let Some(&key) = machine.missing(model).first() {
            return Err(MachineError::Value {
                origin: machine.name.clone(),
                key,
                found: "missing".to_owned(),
                accepted: "a number from 0 on, which the model needs",
            });
        }
        let own = machine.levels.iter().map(|level| level.parameters.or(machine.parameters));
        let levels = own.chain(std::iter::once(machine.parameters)).map(|p| Linear::new(model, &p)).collect();
        let protocol = |p: &Protocol| (p.from_bytes, Linear::new(model, &p.parameters.or(machine.parameters)));
        let protocols = machine.protocols.iter().map(protocol).collect();
        let in_order = (0..ranks).all(|rank| machine.place(rank, ranks) == rank);
        let places = if in_order { Vec::new() } else { (0..ranks).map(|r| machine.place(r, ranks)).collect() };
        let (sizes, are_typical) = (machine.level_ranks(), machine.has_typical_prices());
        Ok(Self { levels, protocols, sizes, places, are_typical })
    }

    /// Returns the prices of a message of `bytes` bytes from rank `a` to rank `b`.
    pub fn between(&self, a: u32, b: u32, bytes: u64) -> &Linear {
        let (a, b) = (self.place(a), self.place(b));
        let same = self.sizes.iter().position(|size| a / size == b / size);
        same.map_or_else(|| self.outermost(bytes), |level| &self.levels[level])
    }

    /// Returns lower bounds on the prices of all messages.
    pub fn cheapest(&self) -> Linear {
        self.cheapest_of(0..self.levels.len())
    }

    /// Returns lower bounds on the prices of the messages of some levels, counted from the innermost. The number after
    /// the last level is that of messages between members of the outermost level.
    pub fn cheapest_of(&self, levels: Range<usize>) -> Linear {
        let protocols = if levels.end == self.levels.len() { &self.protocols[..] } else { &[] };
        let others = self.levels[levels.start + 1..levels.end].iter().map(|&level| (1, level));
        others.chain(protocols.iter().copied()).fold(self.levels[levels.start], Linear::least)
    }

    /// Returns the number of levels that have members of several ranks.
    pub fn level_count(&self) -> usize {
        self.sizes.len()
    }

    /// Returns for each rank the member of a level that it belongs to.
    pub fn members(&self, level: usize, ranks: u32) -> impl Iterator<Item = u32> + '_ {
        (0..ranks).map(move |rank| self.place(rank) / self.sizes[level])
    }

    fn place(&self, rank: u32) -> u32 {
        self.places.get(rank as usize).copied().unwrap_or(rank)
    }

    /// Returns true if some messages may leave before the gap has passed (LogfP).
    pub fn may_run_ahead(&self) -> bool {
        self.outermost(0).gap_slack > 0
    }

    /// Returns the prices of a message of `bytes` bytes between members of the outermost level.
    pub fn outermost(&self, bytes: u64) -> &Linear {
        let reached = self.protocols.iter().rev().find(|(from, _)| bytes >= *from);
        reached.map_or(&self.levels[self.sizes.len()], |(_, prices)| prices)
    }
}

impl Prices for LevelPrices {
    fn send(&self, from: u32, to: u32, bytes: u64) -> Send {
        self.between(from, to, bytes).send(bytes)
    }

    fn receive(&self, from: u32, to: u32, bytes: u64) -> Receive {
        self.between(from, to, bytes).receive(bytes)
    }

    fn reduce(&self, _rank: u32, bytes: u64) -> u64 {
        self.outermost(0).reduce(bytes)
    }

    fn eager_bytes(&self) -> u64 {
        self.outermost(0).eager_bytes
    }

    fn gap_slack(&self) -> u64 {
        self.outermost(0).gap_slack
    }

    fn uses_cpus(&self) -> bool {
        self.outermost(0).uses_cpus
    }
}

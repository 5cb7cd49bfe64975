//! The proof of stored programs. Only this module creates a [`Stored`]; plan files, runtime and MPI execute nothing
//! else.
//!
//! The proof uses the programs alone, whether they come from a proven schedule or from a file. It proves, in this
//! order:
//!
//! 1. **bounds**: no row is outside its table, no place outside its buffer;
//! 2. **messages and order** ([`super::order`]): each message has one sender and one receiver with equal lengths, the
//!    library keeps the order of messages, and there is no cycle of waits even if no message is buffered;
//! 3. **memory** ([`super::windows`]): accesses of a rank that clash are ordered, whenever the library reads or writes
//!    messages;
//! 4. **alignment** ([`super::align`]): a vector's end cuts off the same blocks everywhere;
//! 5. **contents** ([`super::raise`]): the programs, converted back to a schedule, are complete and free of races. This
//!    proof also gives the repeatability and the method;
//! 6. **in place**: with the input in the output, 2 and 3 hold again, and every read of the input precedes the write
//!    that replaces it. So contents are those of 5, and ranks that run in place may be mixed with ranks that do not.

use std::ops::Range;

use unisono_base::parallel;
use unisono_collective::{Collective, Dtype, Kind, Operator, OperatorClass};

use super::{
    Blocking, Elements, Facts, MOST_TAGS, Place, RankProgram, Stored, Wait, align, in_place,
    lower::serves_whole_vectors,
    offset,
    order::{self, Event, Order},
    raise, windows,
};
use crate::verify::{Method, Proof, verify};

/// The least number of steps, of all ranks together, from which memory and contents are checked concurrently.
const LONG: usize = 1 << 12;

/// Reasons for which programs are not proven.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsound {
    #[error("there are programs for {found} ranks; the collective has {ranks}")]
    Ranks { found: usize, ranks: u32 },
    #[error("the program of rank {rank} reaches outside its tables or buffers")]
    Bounds { rank: u32 },
    #[error("the program of rank {rank} asks for more scratch memory than it uses")]
    Scratch { rank: u32 },
    #[error("the programs have {events} steps and messages; at most 2^32 - 1 are accepted")]
    TooLarge { events: u64 },
    #[error("the program of rank {rank} has {lanes} lanes, too many for its length to be checked; use fewer")]
    TooManyLanes { rank: u32, lanes: usize },
    #[error("row {row} of the {what} of rank {rank} does not belong to exactly one step of its lane")]
    Rows { rank: u32, what: &'static str, row: u32 },
    #[error("messages with tag {tag} from rank {from} to rank {to} belong to two lanes, so their order is not defined")]
    Lanes { from: u32, to: u32, tag: u32 },
    #[error("a message with tag {tag} from rank {from} to rank {to} has only one end")]
    Unmatched { from: u32, to: u32, tag: u32 },
    #[error(
        "a message with tag {tag} from rank {from} to rank {to} has {sent} blocks when sent and {received} when received"
    )]
    Length { from: u32, to: u32, tag: u32, sent: u32, received: u32 },
    #[error("{events} steps and messages wait for each other in a circle")]
    Circle { events: u64 },
    #[error("step {step} of rank {rank} takes blocks that are not those of its alignment")]
    Alignment { rank: u32, step: u32 },
    #[error("step {step} of rank {rank} writes where it still reads other blocks")]
    Shifted { rank: u32, step: u32 },
    #[error("{earlier} and {later} of rank {rank} meet at one place in no fixed order")]
    Overlap { rank: u32, earlier: String, later: String },
    #[error("{why}")]
    Contents { why: String },
    #[error("it claims {what}, which does not hold")]
    Claim { what: &'static str },
}

/// Returns the class of operators that a collective's schedule serves.
pub fn class_of(c: &Collective) -> OperatorClass {
    match c.kind {
        Kind::Barrier => OperatorClass::None,
        kind if !kind.reduces() => OperatorClass::None,
        _ if c.operator.commutative() => OperatorClass::Commutative,
        _ => OperatorClass::Ordered,
    }
}

impl Stored {
    /// Proves programs over the blocks of a collective, and derives their facts. `order` is the order of their events,
    /// if already known.
    ///
    /// # Errors
    /// Returns the first property that does not hold.
    pub(super) fn prove(
        c: Collective,
        blocking: Blocking,
        origin: String,
        programs: Vec<RankProgram>,
        order: Option<Order>,
    ) -> Result<Self, Unsound> {
        if programs.len() != c.ranks as usize {
            return Err(Unsound::Ranks { found: programs.len(), ranks: c.ranks });
        }
        let ranks: Vec<u32> = (0..c.ranks).collect();
        let checked = parallel::map(&ranks, |&rank| {
            let program = &programs[rank as usize];
            bounds(program, &c, blocking, rank)?;
            if program.scratch_blocks > used_scratch(program) { Err(Unsound::Scratch { rank }) } else { Ok(()) }
        });
        checked.collect::<Result<(), _>>()?;
        let mut aliased = in_place_programs(&programs, &c);
        let order = match order {
            Some(order) => order,
            None => match aliased.as_deref().map(order::order) {
                // The order of programs in place is also an order of the other programs, which have fewer waits.
                Some(Ok(order)) => order,
                _ => {
                    aliased = None;
                    order::order(&programs)?
                }
            },
        };
        // A plan serves all operators of its class. Of these, floating-point minima are the hardest to repeat.
        let strictest = match class_of(&c) {
            OperatorClass::Commutative => Collective { operator: Operator::Min, dtype: Dtype::F32, ..c },
            OperatorClass::None | OperatorClass::Ordered => c,
        };
        let memory = || -> Result<bool, Unsound> {
            check_windows(&programs, &order.events, |_| None)?;
            if blocking == Blocking::Any {
                let check = |&rank: &u32| align::check(&programs[rank as usize], rank, &order.events[rank as usize]);
                parallel::map(&ranks, check).collect::<Result<(), _>>()?;
            }
            Ok(aliased.as_deref().is_some_and(|aliased| runs_in_place(aliased, &order.events, &c)))
        };
        let contents = || -> Result<Proof, Unsound> {
            let raised = raise::raise(&programs, &strictest, &order.messages)?;
            Ok(verify(&raised, Method::Auto))
        };
        let steps: usize = programs.iter().map(|program| program.steps.len()).sum();
        let (in_place, proof) = if steps < LONG {
            let in_place = memory()?;
            (in_place, contents()?)
        } else {
            let (in_place, proof) = parallel::both(memory, contents);
            (in_place?, proof?)
        };
        if let Some(first) = proof.diagnostics.first() {
            return Err(Unsound::Contents { why: first.message.clone() });
        }
        let facts = Facts {
            collective: c,
            blocking,
            class: class_of(&c),
            repeatable: proof.repeatable,
            in_place,
            expression: proof.expression_class.unwrap_or_default(),
            method: proof.method.to_owned(),
            origin,
        };
        let elements = Elements {
            class: proof.element_class,
            expression: proof.element_expression,
            unlike: proof.unlike_elements,
        };
        Ok(Self { facts, elements, programs })
    }

    /// Proves programs that claim `facts`, such as those of a file.
    ///
    /// # Errors
    /// Returns the first property that does not hold, or a claim that the proof does not confirm.
    pub fn check(facts: &Facts, programs: Vec<RankProgram>) -> Result<Self, Unsound> {
        let proven = Self::prove(facts.collective, facts.blocking, facts.origin.clone(), programs, None)?;
        let claims = [
            (facts.class == proven.facts.class, "another class of operators than its collective has"),
            (!facts.repeatable || proven.facts.repeatable, "to be repeatable"),
            (!facts.in_place || proven.facts.in_place, "to run in place"),
            (
                facts.expression.is_empty() || facts.expression == proven.facts.expression,
                "another class of expressions",
            ),
            (facts.method == proven.facts.method, "another method of proof"),
        ];
        match claims.iter().find(|(holds, _)| !holds) {
            Some(&(_, what)) => Err(Unsound::Claim { what }),
            None => Ok(Self { facts: facts.clone(), ..proven }),
        }
    }
}

/// Checks the memory accesses of every rank. If `offset(rank)` is given, the rank's input starts at this block of its
/// output.
fn check_windows(
    programs: &[RankProgram],
    events: &[Vec<Event>],
    offset: impl Fn(u32) -> Option<u32> + Sync,
) -> Result<(), Unsound> {
    let ranks: Vec<u32> = (0u32..).zip(programs).map(|(rank, _)| rank).collect();
    let check = |&rank: &u32| windows::check(&programs[rank as usize], rank, &events[rank as usize], offset(rank));
    parallel::map(&ranks, check).collect()
}

/// Returns the number of blocks of scratch memory up to the last one that a program accesses.
pub fn used_scratch(p: &RankProgram) -> u32 {
    let steps = p.steps.iter().flat_map(|s| [Some(s.a), s.b, s.to].map(|place| (place, s.len)));
    let arrivals = p.arrivals.iter().map(|a| (Some(a.place), a.len));
    let departures = p.departures.iter().map(|d| (Some(d.place), d.len));
    let ends = steps.chain(arrivals).chain(departures).filter_map(|(place, len)| match place {
        Some(Place::Tmp(start)) => Some(start + len),
        _ => None,
    });
    ends.max().unwrap_or(0)
}

/// Returns the programs of all ranks with their inputs in their outputs, or `None` if a rank needs a copy of its input.
fn in_place_programs(programs: &[RankProgram], c: &Collective) -> Option<Vec<RankProgram>> {
    let ranks: Vec<u32> = (0..c.ranks).collect();
    parallel::map(&ranks, |&rank| in_place(&programs[rank as usize], c, rank)).collect()
}

/// Returns true if the memory accesses of programs in place are ordered. `events` is an order of the events of each
/// rank, which need not satisfy the waits of the programs in place.
fn runs_in_place(aliased: &[RankProgram], events: &[Vec<Event>], c: &Collective) -> bool {
    let is_sound = |events: &[Vec<Event>]| check_windows(aliased, events, |rank| offset(c, rank)).is_ok();
    if events.iter().zip(aliased).all(|(events, program)| has_waits(events, program)) {
        return is_sound(events);
    }
    order::order(aliased).is_ok_and(|order| is_sound(&order.events))
}

/// Returns true if each event of a rank comes after all events that the program makes it wait for.
fn has_waits(events: &[Event], p: &RankProgram) -> bool {
    let (mut steps, mut departures) = (vec![false; p.steps.len()], vec![false; p.departures.len()]);
    events.iter().all(|&event| {
        let waits = match event {
            Event::Step(s) => &p.steps[s as usize].waits,
            Event::Posted(a) => &p.arrivals[a as usize].waits,
            Event::Ended(d) => {
                departures[d as usize] = true;
                return true;
            }
        };
        let has_all = p.waits[waits.start as usize..waits.end as usize].iter().all(|wait| match *wait {
            Wait::Step(s) => steps[s as usize],
            Wait::Departure(d) => departures[d as usize],
        });
        if let Event::Step(s) = event {
            steps[s as usize] = true;
        }
        has_all
    })
}

/// Checks that row numbers are inside their tables and places inside their buffers, and that alignments fit the places.
///
/// # Errors
/// Returns an error if the program of `rank` has a number outside these limits, or if `blocking` is [`Blocking::Any`]
/// and the collective's data are not whole vectors.
pub fn bounds(p: &RankProgram, c: &Collective, blocking: Blocking, rank: u32) -> Result<(), Unsound> {
    if blocking == Blocking::Any && !serves_whole_vectors(c.kind) {
        return Err(Unsound::Claim { what: "to serve any count, which needs whole vectors" });
    }
    let inside = |place: Place, len: u32, align: u32| {
        let (start, size) = match place {
            Place::In(start) => (start, c.input_len(rank)),
            Place::Out(start) => (start, c.output_len(rank)),
            Place::Tmp(start) => (start, p.scratch_blocks),
        };
        // If blocks are cut off at the end of the vector, a block in a user's buffer must be at the position of its
        // input block.
        let aligned = match (blocking, place) {
            (Blocking::Equal, _) => align == 0,
            (Blocking::Any, Place::Tmp(_)) => u64::from(align) + u64::from(len) <= u64::from(c.elements),
            (Blocking::Any, _) => start == align,
        };
        aligned && len > 0 && u64::from(start) + u64::from(len) <= u64::from(size)
    };
    let part = |range: &Range<u32>, len: usize| range.start <= range.end && range.end as usize <= len;
    let mut ends = (0, 0);
    let mut lanes = true;
    for lane in &p.lanes {
        lanes &= (lane.steps.start, lane.arrivals.start) == ends;
        lanes &= lane.steps.start <= lane.steps.end && lane.arrivals.start <= lane.arrivals.end;
        ends = (lane.steps.end, lane.arrivals.end);
    }
    lanes &= (ends.0 as usize, ends.1 as usize) == (p.steps.len(), p.arrivals.len());
    let steps = p.steps.iter().all(|s| {
        [Some(s.a), s.b, s.to].into_iter().flatten().all(|place| inside(place, s.len, s.align))
            && !matches!(s.to, Some(Place::In(_)))
            && (s.b.is_none() || s.to.is_some())
            && part(&s.arrivals, p.arrivals.len())
            && part(&s.departures, p.departures.len())
            && part(&s.waits, p.waits.len())
    });
    let peer = |peer: u32, tag: u32| peer < c.ranks && peer != rank && tag < MOST_TAGS;
    let arrivals = p.arrivals.iter().all(|a| {
        inside(a.place, a.len, a.align)
            && !matches!(a.place, Place::In(_))
            && peer(a.peer, a.tag)
            && part(&a.waits, p.waits.len())
    });
    let departures = p.departures.iter().all(|d| inside(d.place, d.len, d.align) && peer(d.peer, d.tag));
    let waits = p.waits.iter().all(|w| match *w {
        Wait::Step(n) => (n as usize) < p.steps.len(),
        Wait::Departure(n) => (n as usize) < p.departures.len(),
    });
    if lanes && steps && arrivals && departures && waits { Ok(()) } else { Err(Unsound::Bounds { rank }) }
}

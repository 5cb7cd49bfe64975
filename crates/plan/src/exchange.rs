//! Builds one schedule from a list of point-to-point messages, all sent concurrently.
//!
//! This is the communication of a program in which no collective was found: non-blocking messages between pairs. A rank
//! sends its messages in order without waiting. Each receive has its own lane, so a message is taken when it arrives. Partial
//! results are combined in the order of ranks.

use unisono_base::{NodeId, Span, narrow};
use unisono_collective::{Collective, Dtype, Kind, Operator, Required, Source};
use unisono_schedule::{BuildError, Builder, Operand, Schedule};

use crate::PlanError;

/// Elements from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    pub elements: u64,
}

/// The widest elements that make up elements of so many bytes, and how many of these `count` are. Where that is odd, the
/// last one is half empty.
pub fn whole_elements(element_bytes: u64, count: u64) -> (Dtype, u64) {
    let fits = [Dtype::F64, Dtype::F32, Dtype::F16].into_iter().find(|d| element_bytes.is_multiple_of(d.bytes()));
    let dtype = fits.unwrap_or(Dtype::F16);
    (dtype, count.saturating_mul(element_bytes).div_ceil(dtype.bytes()))
}

/// Builds the schedule of messages among `ranks` ranks, and lists the required contents of each output. A rank's input holds
/// the messages that it sends, in the order of `messages`; its output holds those that it receives. The collective of the
/// schedule is an alltoall that is large enough for these buffers, and only defines their lengths.
///
/// # Errors
/// A rank gives or gets 2^32 elements or more, or the tables are full.
pub fn messages_schedule(
    ranks: u32,
    dtype: Dtype,
    messages: &[Message],
) -> Result<(Schedule, Vec<Vec<Required>>), PlanError> {
    let (mut given, mut got) = (vec![0_u64; ranks as usize], vec![0_u64; ranks as usize]);
    for m in messages {
        given[m.from as usize] += m.elements;
        got[m.to as usize] += m.elements;
    }
    let longest = given.iter().chain(&got).copied().max().unwrap_or(0);
    let block = longest.div_ceil(u64::from(ranks));
    let collective = Collective::new(Kind::Alltoall, ranks, block, 0, Operator::Sum, dtype)?;
    let mut builder = Builder::new(collective);
    builder.origin("messages");
    builder.reserve(2 * messages.len(), messages.len());
    let mut required = vec![Vec::new(); ranks as usize];
    given.fill(0);
    got.fill(0);
    // Sends come before receives in the lanes of a rank.
    let mut lanes = vec![0; ranks as usize];
    messages.iter().for_each(|m| lanes[m.from as usize] = 1);
    let take = |at: &mut u64, elements: u64| {
        let start = narrow(*at);
        *at += elements;
        start
    };
    for m in messages.iter().filter(|m| m.elements > 0) {
        let (from, to, len) = (NodeId(m.from), NodeId(m.to), narrow(m.elements));
        let input = take(&mut given[from.index()], m.elements);
        let output = take(&mut got[to.index()], m.elements);
        let stream = Operand::Stream(builder.stream(from, &[to]));
        builder.combine(from, 0, len, &[Operand::In(input)], &[stream]);
        builder.combine(to, lanes[to.index()], len, &[stream], &[Operand::Out(output)]);
        lanes[to.index()] += 1;
        let source = Source::Copy { rank: m.from };
        required[to.index()].push(Required { span: Span::new(output, len), input_start: input, source });
    }
    Ok((builder.finish().map_err(too_large)?, required))
}

/// A reduction in which every partial result goes straight to every rank that needs it.
///
/// # Errors
/// The collective is not a reduction, or the tables are full.
pub fn direct_reduction(collective: Collective) -> Result<Schedule, PlanError> {
    let c = collective;
    let roots = match c.kind {
        Kind::Reduce => c.root..c.root + 1,
        Kind::Allreduce | Kind::ReduceScatter => 0..c.ranks,
        other => {
            return Err(PlanError::NotTimed {
                algorithm: other.name().to_owned(),
                model: "messages",
                message: "it combines nothing".to_owned(),
            });
        }
    };
    let mut builder = Builder::new(c);
    builder.origin("messages");
    let part = |root: u32| Operand::In(if c.kind == Kind::ReduceScatter { root * c.elements } else { 0 });
    for root in roots {
        let to = NodeId(root);
        let mut sum = None;
        for rank in 0..c.ranks {
            let own = if rank == root {
                part(root)
            } else {
                let stream = Operand::Stream(builder.stream(NodeId(rank), &[to]));
                builder.combine(NodeId(rank), 0, c.elements, &[part(root)], &[stream]);
                stream
            };
            let sources: Vec<Operand> = sum.into_iter().chain([own]).collect();
            builder.combine(to, 1, c.elements, &sources, &[Operand::Out(0)]);
            sum = Some(Operand::Out(0));
        }
    }
    builder.finish().map_err(too_large)
}

fn too_large(error: BuildError) -> PlanError {
    PlanError::NotTimed { algorithm: "messages".to_owned(), model: "messages", message: error.to_string() }
}

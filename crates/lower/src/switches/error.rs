//! The reasons why a schedule cannot be lowered to registers.

use unisono_base::{Span, StreamId};
use unisono_collective::Kind;

/// The reason for a refusal. Callers print the instruction before it, so some texts are the end of a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("a core gives a part of its input to a stream, or takes a part of its output from one")]
    Core,
    #[error("{stream} connects two cores; a core exchanges data with its own switch")]
    TwoCores { stream: StreamId },
    #[error("{stream} connects switch {switch} and core {core}; a core has a link to its own switch")]
    OtherCore { stream: StreamId, switch: u32, core: u32 },
    #[error("{stream} connects switches {from} and {to}, which have no link")]
    NoLink { stream: StreamId, from: u32, to: u32 },
    #[error("identifier {identifier} has elements {known} and {other}; it can have one part")]
    TwoParts { identifier: u8, known: Span, other: Span },
    #[error("identifiers {one} and {other} have parts of the vector that overlap at element {element}")]
    Overlap { one: u8, other: u8, element: u64 },
    #[error("a switch has no memory; its operands are streams")]
    NoMemory,
    #[error("a switch reads streams, and here it reads none")]
    NoSource,
    #[error("{stream} has another channel than the source before it")]
    OtherChannel { stream: StreamId },
    #[error("its sources are not in the order of their ports, in which engines reduce")]
    Order,
    #[error("{stream} has identifier {found}; what it carries came by {came_by}")]
    OtherIdentifier { stream: StreamId, found: u8, came_by: u8 },
    #[error("{stream}: a request goes to one switch, and from an engine")]
    Request { stream: StreamId },
    #[error("{stream}: a switch has one response of an identifier")]
    TwoResponses { stream: StreamId },
    #[error("a response has one source")]
    ResponseSources,
    #[error("switch {switch} has another such instruction of identifier {identifier}")]
    Again { switch: u32, identifier: u8 },
    #[error("no core gives or takes anything by identifier {identifier}")]
    Unused { identifier: u8 },
    #[error("it takes {found} elements of identifier {identifier}, and cores {of_cores}")]
    Elements { found: u32, identifier: u8, of_cores: u32 },
    #[error("the response of switch {switch}, identifier {identifier}, is not one of a {kind}'s registers")]
    Response { switch: u32, identifier: u8, kind: Kind },
}

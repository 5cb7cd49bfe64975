//! Errors in a description of a collective.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CollectiveError {
    #[error("'{found}' is not {} {what}; accepted are {accepted}", article(what))]
    UnknownName { what: &'static str, found: String, accepted: String },
    #[error("0 ranks were asked for; a collective needs at least 1")]
    NoRanks,
    #[error("{ranks} ranks were asked for; at most {most} are accepted")]
    TooManyRanks { ranks: u32, most: u32 },
    #[error("root {root} is outside the {ranks} ranks; accepted are 0 to {}", ranks - 1)]
    Root { root: u64, ranks: u32 },
    #[error("operator {operator} is not defined for {dtype}; it accepts {accepted}")]
    OperatorDtype { operator: &'static str, dtype: &'static str, accepted: &'static str },
    #[error(
        "{kind} of {elements} elements on {ranks} ranks needs a buffer of {buffer} elements; a buffer holds at most \
         {most}"
    )]
    TooLarge { kind: &'static str, elements: u64, ranks: u32, buffer: u128, most: u64 },
    #[error(
        "{kind} of {elements} elements on {ranks} ranks has a buffer of more than {} elements, so it is planned in units \
         of {unit} elements; choose a multiple of {unit}",
        u32::MAX
    )]
    Uneven { kind: &'static str, elements: u64, ranks: u32, unit: u64 },
    #[error("two rows serve the same calls: {one}, and {other}")]
    RowsOverlap { one: String, other: String },
    #[error("the row '{row}' for operators of class {class} serves no call")]
    EmptyRow { row: String, class: &'static str },
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

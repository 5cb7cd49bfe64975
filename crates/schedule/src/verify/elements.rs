//! The property `place`: all elements of a result have the same expression, on each rank that holds them.
//!
//! A result is the vector of an allreduce or a reduce, the pieces of all ranks of a reduce-scatter, or the output of
//! one rank of a scan. Collectives that move data copy each element and combine none, so they have the property. The
//! class of such a result is the SHA-256 of its expression, without the lengths of buffers. So schedules of different
//! lengths and collectives have the same class if their elements have the same expression.

use unisono_base::Span;
use unisono_collective::Kind;

use super::{
    contributors::Expression,
    expressions::{END, Expressions},
    name::Name,
};

/// Greatest number of ranks that the text of an expression lists.
const MOST_LISTED: usize = 16;

/// The length in bytes after which the text of an expression is cut. The text of a sum of marked sums begins with many
/// parentheses.
const MOST_WRITTEN: usize = 200;

/// An element of an output: its rank, its index and its expression.
type Element = (u32, u32, u32);

pub struct Elements {
    kind: Kind,
    first: Option<Element>,
    /// The description of two elements with different expressions; `None` until two are found.
    unlike: Option<String>,
    name: Name,
}

impl Elements {
    pub fn new(kind: Kind) -> Self {
        let name = if kind == Kind::Scan { Name::new(true) } else { Name::keeping() };
        Self { kind, first: None, unlike: None, name }
    }

    /// Adds the output of a rank: spans with the ids of their expressions.
    pub fn add(&mut self, rank: u32, output: &[(Span, u32)], expressions: &Expressions) {
        if !self.kind.reduces() || self.kind == Kind::Barrier || self.unlike.is_some() {
            return;
        }
        let result = if self.kind == Kind::Scan { rank } else { 0 };
        for &(span, id) in output {
            match self.first.filter(|first| self.kind != Kind::Scan || first.0 == rank) {
                None => {
                    self.first = Some((rank, span.start, id));
                    self.name.add(result, &[(Span::new(0, 0), id)], expressions);
                }
                Some(first) if first.2 != id => {
                    let text = |(rank, element, id): Element| {
                        format!("element {element} of rank {rank} is {}", text(id, expressions))
                    };
                    self.unlike = Some(format!("{}, and {}", text(first), text((rank, span.start, id))));
                    return;
                }
                Some(_) => {}
            }
        }
    }

    /// Returns the class as 64 hexadecimal digits, and the expression if all results have the same one; `None` if the
    /// expression has too many combinations.
    ///
    /// # Errors
    /// Returns a description of two elements with different expressions.
    pub fn finish(mut self) -> Result<Option<(String, Option<Expression>)>, String> {
        match self.unlike {
            Some(unlike) => Err(unlike),
            None => {
                let expression = self.name.expression().map(Expression::new);
                Ok(self.name.digest(32).map(|class| (class, expression)))
            }
        }
    }
}

/// Returns the text of an expression, up to its first [`MOST_LISTED`] ranks. A sum is read from the left, so only the
/// whole sum and right operands have parentheses. Otherwise the text of a ring would begin with one parenthesis for
/// each rank.
fn text(id: u32, expressions: &Expressions) -> String {
    enum Part {
        Text(&'static str),
        Operand(u32),
        LeftOperand(u32),
    }
    let (mut written, mut listed) = (String::new(), 0);
    let mut open = vec![Part::Operand(id)];
    while let Some(part) = open.pop() {
        match part {
            Part::Text(part) => written.push_str(part),
            Part::Operand(id) | Part::LeftOperand(id) => match expressions.written(id) {
                None => {
                    written.push_str(&id.to_string());
                    listed += 1;
                }
                Some((a, mark)) if mark >= END => open.extend([Part::Text("'"), Part::Operand(a)]),
                Some((a, b)) => {
                    let sum = [Part::Operand(b), Part::Text(" + "), Part::LeftOperand(a)];
                    if matches!(part, Part::Operand(_)) {
                        open.push(Part::Text(")"));
                        written.push('(');
                    }
                    open.extend(sum);
                }
            },
        }
        if (listed == MOST_LISTED || written.len() > MOST_WRITTEN) && !open.is_empty() {
            written.push_str(" ...");
            break;
        }
    }
    written
}

//! Holds a parsed project against what is known of the language and the fabric without the vendor's compiler.
//!
//! 1. One rectangle; every PE in it has one program; at most one route a PE and color (`rectangle`, `tile`, `config`).
//! 2. Colors are those a program may route, and different names are different colors (`color`).
//! 3. What a router sends in its first position, its neighbor accepts in some position, and the other way round;
//!    nothing leaves the rectangle, turns around or runs in a circle (`link`, `edge`, `u-turn`, `circle`).
//! 4. A position accepts one direction; a switch position names one side and one direction; there are three at most,
//!    without gaps (`position`).
//! 5. Operands fit their operation in kind and length; queues exist and serve one color; a control wavelet takes the
//!    queue of its data (`operation`, `operand`, `extent`, `queue`, `control`).
//! 6. Operations that may run together share neither queue nor microthread; whatever is activated is bound, started and
//!    has an id that no color in use has; who waits is woken (`live`, `task`, `wake`).
//! 7. A router does not have to advance further than its switch goes (`advance`).
//! 8. Every program ends by letting the host go on; names the host uses and parameters agree (`end`, `export`,
//!    `params`).
//! 9. Vectors fit in the memory of a PE (`memory`).
//! 10. An untimed run with these switches ends, and nothing is left in the fabric (`deadlock`, `left-over`, `lost`).

mod code;
mod fabric;
mod layout;
mod routes;
mod run;
mod tasks;

use std::fmt;

use super::{Project, SdkTarget};

/// What is wrong, where, and by which check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub code: &'static str,
    pub place: String,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.code, self.place, self.message)
    }
}

/// Keeps the first findings and counts the rest: a project wrong everywhere must not fill the memory.
#[derive(Default)]
struct Findings {
    kept: Vec<Finding>,
    left_out: u64,
}

impl Findings {
    const KEPT: usize = 64;

    fn add(&mut self, code: &'static str, place: impl fmt::Display, message: impl Into<String>) {
        if self.kept.len() < Self::KEPT {
            self.kept.push(Finding { code, place: place.to_string(), message: message.into() });
        } else {
            self.left_out += 1;
        }
    }
}

/// All findings, in the order of the checks; none for what [`emit`](super::emit) writes.
pub fn check(project: &Project, target: &SdkTarget) -> Vec<Finding> {
    let mut found = Findings::default();
    layout::check(project, target, &mut found);
    for (file, code) in &project.codes {
        code::check(file, code, target, &mut found);
        tasks::check(file, code, project, target, &mut found);
    }
    routes::check(project, target, &mut found);
    match project.program() {
        Ok(program) => {
            if fabric::check(&program, &mut found) {
                run::check(&program, &mut found);
            }
        }
        Err(e) if found.kept.is_empty() => {
            found.add("read", format!("{}, line {}", e.file, e.line), e.message);
        }
        // What keeps the program from being read was found above.
        Err(_) => {}
    }
    if found.left_out > 0 {
        let message = format!("{} more findings left out", found.left_out);
        found.kept.push(Finding { code: "more", place: "project".to_owned(), message });
    }
    found.kept
}

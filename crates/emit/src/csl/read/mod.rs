//! Reads an emitted project: words, tree, the layout with its loops unrolled, the program files, the wafer program.

mod assembly;
mod code;
mod config;
mod expression;
mod layout;
mod lexer;
mod machine;
mod note;
mod parser;
mod program;
mod project;
mod template;
mod threads;
mod tree;

pub use code::{Code, Descriptor};
pub use config::Config;
pub use layout::Layout;
pub use program::read;
pub use project::Project;
pub use threads::{Run, Threads};
pub use tree::Expr;

/// Why a project cannot be read, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}, line {line}: {message}")]
pub struct ReadError {
    pub file: String,
    pub line: u32,
    pub message: String,
}

impl ReadError {
    fn new(file: &str, line: u32, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

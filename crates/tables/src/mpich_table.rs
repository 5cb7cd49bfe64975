//! MPICH's complete selection table: nested conditions, tested in the order of the file; the first condition that holds
//! applies. A file for MPICH must be complete, because a missing entry aborts the program at its start. The table and
//! the names of all algorithms are read from the library, which contains them as text.
//!
//! ```text
//! node := { "condition": node, ... } | { "algorithm=NAME": { "param=value": {}, ... } }
//! ```
//!
//! Source: MPICH, `src/mpi/coll/src/csel.c`, `maint/tuning/coll/mpir/generic.json`.

use std::{collections::BTreeSet, fmt::Write};

/// A node of the table: conditions, algorithms or parameters in order, each with its own node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree(pub Vec<(String, Tree)>);

/// The table of one MPICH library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LibraryTable {
    pub tree: Tree,
    /// The names of the library's algorithms; if the table was read from a JSON file, only those that the table uses.
    pub algorithms: BTreeSet<String>,
}

/// The maximum number of levels of a table. The root, at depth 0, is the first.
const MOST_LEVELS: u32 = 64;
/// The maximum number of bytes of a table that are read from a library.
const LONGEST: usize = 1 << 20;
const START: &[u8] = b"{\"collective=";
const ALGORITHM: &str = "algorithm=";

impl LibraryTable {
    /// Reads the table in a library (`libmpi.so.12`) or in a JSON file.
    ///
    /// # Errors
    /// Returns an error if the bytes contain no table, or the table lacks collectives.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if !bytes.starts_with(b"\x7fELF") {
            let text = std::str::from_utf8(bytes).map_err(|e| format!("it is neither a library nor a text: {e}"))?;
            return Self::of(Tree::parse(text)?, BTreeSet::new());
        }
        let names = find(bytes, ALGORITHM.as_bytes()).filter_map(|at| {
            let name = bytes[at + ALGORITHM.len()..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
            String::from_utf8(name.copied().collect()).ok()
        });
        let names: BTreeSet<String> = names.filter(|n| n.starts_with("MPIR_")).collect();
        // Tables of MPICH's device layer begin with the same bytes, but contain compositions of algorithms, so they are
        // not used. Of the other tables, the longest one is complete.
        let tables = find(bytes, START).filter_map(|at| {
            let text = bytes[at..].iter().take(LONGEST).take_while(|b| **b != 0).copied().collect();
            String::from_utf8(text).ok().filter(|t| !t.contains("composition="))
        });
        let table = tables.max_by_key(String::len).ok_or("it has no selection table; is it an MPICH library?")?;
        Self::of(Tree::parse(&table)?, names)
    }

    fn of(tree: Tree, mut algorithms: BTreeSet<String>) -> Result<Self, String> {
        let complete = ["allreduce", "bcast", "iallreduce", "neighbor_allgather"];
        if let Some(lacks) = complete.into_iter().find(|c| tree.find(&format!("collective={c}")).is_none()) {
            return Err(format!("the table lacks collective={lacks}: it is not complete, and MPICH would abort"));
        }
        tree.names(&mut algorithms);
        Ok(Self { tree, algorithms })
    }
}

fn find<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = what[0];
    let starts = bytes.iter().enumerate().filter(move |(_, b)| **b == first).map(|(at, _)| at);
    starts.filter(move |&at| bytes[at..].starts_with(what))
}

impl Tree {
    /// Returns a leaf that names an algorithm and its parameters.
    pub fn algorithm(name: &str, params: &[(&'static str, String)]) -> Self {
        let params = params.iter().map(|(key, value)| (format!("{key}={value}"), Tree::default())).collect();
        Tree(vec![(format!("{ALGORITHM}{name}"), Tree(params))])
    }

    pub fn find(&self, key: &str) -> Option<&Tree> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, t)| t)
    }

    pub fn find_mut(&mut self, key: &str) -> Option<&mut Tree> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, t)| t)
    }

    pub fn names(&self, to: &mut BTreeSet<String>) {
        for (key, tree) in &self.0 {
            to.extend(key.strip_prefix(ALGORITHM).map(str::to_owned));
            tree.names(to);
        }
    }

    /// # Errors
    /// Returns a sentence with the line at which the text is not a table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let tree = reader.node(0)?;
        reader.skip_space();
        if reader.at < text.len() { Err(reader.wrong("the end")) } else { Ok(tree) }
    }

    pub fn print(&self) -> String {
        let mut text = String::new();
        self.print_to(0, &mut text);
        text.push('\n');
        text
    }

    fn print_to(&self, depth: usize, to: &mut String) {
        if self.0.is_empty() {
            to.push_str("{}");
            return;
        }
        to.push_str("{\n");
        for (n, (key, tree)) in self.0.iter().enumerate() {
            let _ = write!(to, "{}\"{key}\": ", " ".repeat(depth + 1));
            tree.print_to(depth + 1, to);
            to.push_str(if n + 1 < self.0.len() { ",\n" } else { "\n" });
        }
        let _ = write!(to, "{}}}", " ".repeat(depth));
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &str) -> String {
        let line = self.text[..self.at].iter().filter(|b| **b == b'\n').count() + 1;
        let found = self.text.get(self.at).map_or("the end".to_owned(), |b| format!("'{}'", char::from(*b)));
        format!("line {line}: {expected} is expected, found {found}")
    }

    fn is_next(&mut self, what: u8) -> bool {
        self.skip_space();
        let is_next = self.text.get(self.at) == Some(&what);
        self.at += usize::from(is_next);
        is_next
    }

    fn node(&mut self, depth: u32) -> Result<Tree, String> {
        if depth >= MOST_LEVELS {
            return Err(self.wrong(&format!("a table of at most {MOST_LEVELS} levels")));
        }
        if !self.is_next(b'{') {
            return Err(self.wrong("'{'"));
        }
        let mut entries: Vec<(String, Tree)> = Vec::new();
        if self.is_next(b'}') {
            return Ok(Tree(entries));
        }
        loop {
            if !self.is_next(b'"') {
                return Err(self.wrong("'\"'"));
            }
            let from = self.at;
            // Keys of a table have no escapes.
            while self.text.get(self.at).is_some_and(|b| !matches!(b, b'"' | b'\\' | 0..=31)) {
                self.at += 1;
            }
            let key = String::from_utf8(self.text[from..self.at].to_vec()).map_err(|_| self.wrong("UTF-8"))?;
            if !self.is_next(b'"') {
                return Err(self.wrong("'\"'"));
            }
            if !self.is_next(b':') {
                return Err(self.wrong("':'"));
            }
            if entries.iter().any(|(k, _)| *k == key) {
                return Err(self.wrong(&format!("\"{key}\" once")));
            }
            entries.push((key, self.node(depth + 1)?));
            if self.is_next(b'}') {
                return Ok(Tree(entries));
            }
            if !self.is_next(b',') {
                return Err(self.wrong("',' or '}'"));
            }
        }
    }
}

//! Reads the subset of XML that schedules of MSCCL and topologies of NCCL use: elements with attributes, comments and
//! declarations (`<?...?>`), but no text. Entities are not resolved.

use crate::narrow;

/// An error in an XML text, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XmlError {
    pub line: u32,
    pub message: String,
}

impl XmlError {
    fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// An element with its attributes in order, and the line of its `<`, from 1.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub line: u32,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
}

/// The most elements that may be open at once. Files of the two formats have fewer.
const DEEPEST: usize = 16;

/// Reads a text and returns its root element. `root_name` is the name of the root in the error for a missing root.
///
/// # Errors
/// Returns an error if the text is not XML of this subset.
pub fn parse(text: &str, root_name: &str) -> Result<Element, XmlError> {
    let mut reader = Reader { rest: text, line: 1 };
    let read = reader.root(root_name);
    let is_cut = reader.rest.is_empty() && !text.trim().is_empty();
    read.map_err(|error| match is_cut {
        true => XmlError::new(error.line, format!("{}; the file may be cut", error.message)),
        false => error,
    })
}

fn place(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), XmlError> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => {
            return Err(XmlError::new(element.line, format!("<{}> stands beside the root element", element.name)));
        }
    }
    Ok(())
}

struct Reader<'a> {
    rest: &'a str,
    line: u32,
}

impl Reader<'_> {
    fn root(&mut self, root_name: &str) -> Result<Element, XmlError> {
        let mut open: Vec<Element> = Vec::new();
        let mut root = None;
        loop {
            self.skip_space();
            let line = self.line;
            if self.rest.is_empty() {
                return match (open.last(), root) {
                    (Some(e), _) => Err(XmlError::new(e.line, format!("<{}> is never closed", e.name))),
                    (None, Some(root)) => Ok(root),
                    (None, None) => Err(XmlError::new(line, format!("there is no <{root_name}> element"))),
                };
            }
            if self.skip("<!--") {
                self.skip_past("-->", "a comment is never closed")?;
            } else if self.skip("<?") {
                self.skip_past("?>", "a declaration is never closed")?;
            } else if self.skip("</") {
                let name = self.name()?;
                self.skip_space();
                self.expect(">")?;
                let closed = open.pop().filter(|e| e.name == name);
                let Some(closed) = closed else {
                    return Err(XmlError::new(line, format!("</{name}> closes nothing that is open")));
                };
                place(closed, &mut open, &mut root)?;
            } else if self.skip("<") {
                let (element, is_closed) = self.element(line)?;
                if is_closed {
                    place(element, &mut open, &mut root)?;
                } else if open.len() == DEEPEST {
                    return Err(XmlError::new(line, format!("elements are nested more than {DEEPEST} deep")));
                } else {
                    open.push(element);
                }
            } else {
                let found: String = self.rest.chars().take(20).take_while(|c| *c != '<' && *c != '\n').collect();
                return Err(XmlError::new(line, format!("'{found}' stands where an element is expected")));
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        let lines = self.rest.as_bytes()[..bytes].iter().filter(|b| **b == b'\n').count();
        self.line = self.line.saturating_add(narrow(lines));
        self.rest = &self.rest[bytes..];
    }

    fn skip_space(&mut self) {
        self.advance(self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']).len());
    }

    fn skip(&mut self, what: &str) -> bool {
        let is_next = self.rest.starts_with(what);
        if is_next {
            self.advance(what.len());
        }
        is_next
    }

    fn expect(&mut self, what: &str) -> Result<(), XmlError> {
        if self.skip(what) {
            return Ok(());
        }
        let found = self.rest.chars().next().map_or("the end of the file".to_owned(), |c| format!("'{c}'"));
        Err(XmlError::new(self.line, format!("'{what}' is expected, found {}", found.replace('\n', "a line break"))))
    }

    fn skip_past(&mut self, what: &str, otherwise: &str) -> Result<(), XmlError> {
        let Some(at) = self.rest.find(what) else {
            self.rest = "";
            return Err(XmlError::new(self.line, otherwise));
        };
        self.advance(at + what.len());
        Ok(())
    }

    fn name(&mut self) -> Result<String, XmlError> {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.:".contains(c)));
        let name = self.rest[..end.unwrap_or(self.rest.len())].to_owned();
        if name.is_empty() {
            return Err(XmlError::new(self.line, "a name is expected"));
        }
        self.advance(name.len());
        Ok(name)
    }

    /// Reads the start tag of an element after its `<`, and returns the element without children.
    /// The second value is true if the tag also ends the element (`/>`).
    fn element(&mut self, line: u32) -> Result<(Element, bool), XmlError> {
        let name = self.name()?;
        let mut attributes: Vec<(String, String)> = Vec::new();
        loop {
            self.skip_space();
            let is_closed = self.skip("/>");
            if is_closed || self.skip(">") {
                return Ok((Element { name, line, attributes, children: Vec::new() }, is_closed));
            }
            let key = self.name()?;
            if attributes.iter().any(|(k, _)| *k == key) {
                return Err(XmlError::new(self.line, format!("<{name}> has the attribute {key} twice")));
            }
            self.skip_space();
            self.expect("=")?;
            self.skip_space();
            let quote = if self.skip("'") { "'" } else { "\"" };
            if quote == "\"" {
                self.expect("\"")?;
            }
            let start = self.rest;
            self.skip_past(quote, "an attribute's value is never closed")?;
            let value = &start[..start.len() - self.rest.len() - 1];
            attributes.push((key, value.to_owned()));
        }
    }
}

impl Element {
    /// Returns an attribute's text.
    ///
    /// # Errors
    /// Returns an error if the attribute is missing.
    pub fn text(&self, key: &str) -> Result<&str, XmlError> {
        let missing = || XmlError::new(self.line, format!("<{}> has no attribute {key}", self.name));
        self.find(key).ok_or_else(missing)
    }

    pub fn find(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Returns an attribute's whole number in `from ..= to`; `None` if the attribute is missing or contains only
    /// blanks.
    ///
    /// # Errors
    /// Returns an error if the value is not a number, or is outside the range.
    pub fn stated(&self, key: &str, from: i64, to: i64) -> Result<Option<i64>, XmlError> {
        let is_stated = self.find(key).is_some_and(|text| !trimmed(text).is_empty());
        is_stated.then(|| self.number(key, from, to)).transpose()
    }

    /// Returns an attribute's whole number in `from ..= to`.
    ///
    /// # Errors
    /// Returns an error if the attribute is missing, not a number, or outside the range.
    pub fn number(&self, key: &str, from: i64, to: i64) -> Result<i64, XmlError> {
        let text = self.text(key)?;
        let number = trimmed(text).parse::<i64>().ok().filter(|n| (from..=to).contains(n));
        number.ok_or_else(|| {
            let message =
                format!("{key}=\"{}\" of <{}>; accepted are whole numbers from {from} to {to}", short(text), self.name);
            XmlError::new(self.line, message)
        })
    }
}

/// Returns a value without the surrounding blanks that C also skips around a number. Other kinds of blanks end a number
/// in C.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r'])
}

/// Returns the first 40 characters of a value for an error message, with `...` if characters follow.
pub fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

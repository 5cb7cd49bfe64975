//! A parsed project: its layout and its program files.

use std::collections::BTreeMap;

use super::{Code, Layout, ReadError, parser::parse};
use crate::csl::write::OPERATOR_FILE;

#[derive(Clone, Debug)]
pub struct Project {
    pub(in crate::csl) layout: Layout,
    /// Program files by path.
    pub(in crate::csl) codes: BTreeMap<String, Code>,
    /// The text of the operator's file, if there is one.
    pub(in crate::csl) operator: Option<String>,
}

impl Project {
    /// Reads `layout.csl` and the program files; other files are not looked at.
    ///
    /// # Errors
    /// What is not in the subset that is emitted, with file and line.
    pub fn parse(files: &[(String, String)]) -> Result<Self, ReadError> {
        let (mut layout, mut operator) = (None, None);
        let mut codes = BTreeMap::new();
        for (path, text) in files {
            if !path.ends_with(".csl") {
                continue;
            }
            if path == OPERATOR_FILE {
                operator = Some(text.clone());
                continue;
            }
            let tree = parse(path, text)?;
            if path == "layout.csl" {
                layout = Some(Layout::from_tree(path, &tree)?);
            } else {
                codes.insert(path.clone(), Code::from_tree(path, &tree)?);
            }
        }
        let layout = layout.ok_or_else(|| ReadError::new("layout.csl", 1, "the project has no such file"))?;
        Ok(Self { layout, codes, operator })
    }
}

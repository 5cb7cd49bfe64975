//! The layout with its loops unrolled: what each PE runs, and the routes of each router.

use unisono_base::narrow;
use unisono_collective::Collective;

use super::{
    ReadError,
    config::{Config, config},
    note::collective,
    tree::{Expr, Stmt, StmtKind},
};

/// PEs of a rectangle, and calls a PE that unrolling loops may make: a damaged file must not fill the memory.
const MOST_PES: u64 = 1 << 20;
const MOST_CALLS: u64 = 32;

/// `@set_tile_code` without its place.
#[derive(Clone, PartialEq, Debug)]
pub struct TileSpec {
    pub file: String,
    /// Parameters and what they are given, `memcpy_params` aside.
    pub params: Vec<(String, Expr)>,
    /// `memcpy_params` is given, for the column of the PE.
    pub host_link: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub collective: Option<Collective>,
    pub phases: Vec<String>,
    /// Names and numbers of colors.
    pub colors: Vec<(String, u64)>,
    /// Columns and rows of each `@set_rectangle`.
    pub rectangles: Vec<(u64, u64)>,
    pub tile_specs: Vec<TileSpec>,
    /// Column, row, number of the specification.
    pub tiles: Vec<(u64, u64, u32)>,
    pub config_specs: Vec<Config>,
    pub configs: Vec<(u64, u64, u32)>,
    /// Names and types that the host sees.
    pub exports: Vec<(String, Expr)>,
    /// Columns and rows said to the host link.
    pub host_link: Option<(u64, u64)>,
}

impl Layout {
    pub fn color(&self, name: &str) -> Option<u64> {
        self.colors.iter().find(|c| c.0 == name).map(|c| c.1)
    }

    pub fn from_tree(file: &str, statements: &[Stmt]) -> Result<Self, ReadError> {
        let mut reader = Reader { file, layout: Layout::default(), values: Vec::new(), calls: 0, most_calls: 1000 };
        for s in statements {
            reader.top(s)?;
        }
        Ok(reader.layout)
    }
}

struct Reader<'a> {
    file: &'a str,
    layout: Layout,
    /// Loop variables that are in scope.
    values: Vec<(String, u64)>,
    calls: u64,
    most_calls: u64,
}

impl Reader<'_> {
    fn error(&self, line: u32, message: impl Into<String>) -> ReadError {
        ReadError::new(self.file, line, message)
    }

    fn top(&mut self, s: &Stmt) -> Result<(), ReadError> {
        match &s.kind {
            StmtKind::Note(note) => self.note(s.line, note),
            StmtKind::Let { name, value } => {
                if let Some([Expr::Int(n)]) = value.call("@get_color") {
                    if name != "LAUNCH" {
                        self.layout.colors.push((name.clone(), *n));
                    }
                    return Ok(());
                }
                let size = |field| {
                    let args = value.call("@import_module")?;
                    args.get(1)?.field(field)?.int()
                };
                match (size("width"), size("height")) {
                    (Some(w), Some(h)) => self.layout.host_link = Some((w, h)),
                    _ => {
                        return Err(self.error(s.line, format!("`{name}` is neither a color nor the host link")));
                    }
                }
                Ok(())
            }
            StmtKind::Block("layout", _, body) => body.iter().try_for_each(|s| self.statement(s)),
            _ => Err(self.error(s.line, "a layout has colors, the host link and one `layout` block")),
        }
    }

    fn note(&mut self, line: u32, note: &str) -> Result<(), ReadError> {
        if let Some(name) = note.strip_prefix("phase ") {
            self.layout.phases.push(name.to_owned());
            return Ok(());
        }
        let collective = collective(note).map_err(|e| self.error(line, e))?;
        self.layout.collective = Some(collective);
        Ok(())
    }

    fn statement(&mut self, s: &Stmt) -> Result<(), ReadError> {
        let call = match &s.kind {
            StmtKind::For { range, name, body } => return self.unroll(s.line, range, name, body),
            StmtKind::Do(call) => call,
            _ => return Err(self.error(s.line, "a layout block has calls and loops")),
        };
        self.count(s.line)?;
        match call {
            Expr::Call(name, args) => self.called(s.line, name, args),
            _ => Err(self.error(s.line, "a layout block has calls and loops")),
        }
    }

    fn unroll(&mut self, line: u32, range: &Expr, name: &str, body: &[Stmt]) -> Result<(), ReadError> {
        let numbers = range_of(range).ok_or_else(|| self.error(line, "a loop goes over `@range(u16, ..)`"))?;
        for n in numbers {
            self.count(line)?;
            self.values.push((name.to_owned(), n));
            let done = body.iter().try_for_each(|s| self.statement(s));
            self.values.pop();
            done?;
        }
        Ok(())
    }

    fn count(&mut self, line: u32) -> Result<(), ReadError> {
        self.calls += 1;
        if self.calls > self.most_calls {
            return Err(self.error(line, format!("more than {} calls with loops unrolled", self.most_calls)));
        }
        Ok(())
    }

    fn value(&self, e: &Expr) -> Option<u64> {
        let name = match e {
            Expr::Name(name) => name,
            other => return other.int(),
        };
        self.values.iter().rev().find(|v| v.0 == *name).map(|v| v.1)
    }

    fn called(&mut self, line: u32, name: &str, args: &[Expr]) -> Result<(), ReadError> {
        match (name, args) {
            ("@set_rectangle", [w, h]) => {
                let size = self.value(w).zip(self.value(h));
                let size = size.ok_or_else(|| self.error(line, "the rectangle's sides are numbers"))?;
                let pes = size.0.saturating_mul(size.1);
                if pes > MOST_PES {
                    return Err(self.error(line, format!("a rectangle of {pes} PEs; up to {MOST_PES} are read")));
                }
                self.most_calls = self.most_calls.max(1000 + pes * MOST_CALLS);
                self.layout.rectangles.push(size);
                Ok(())
            }
            ("@set_tile_code", [x, y, Expr::Str(file), params]) => {
                let at = self.at(line, x, y)?;
                let host_link = params
                    .field("memcpy_params")
                    .and_then(|p| p.call("memcpy.get_params"))
                    .is_some_and(|args| matches!(args, [column] if self.value(column) == Some(at.0)));
                let Expr::Struct(fields) = params else {
                    return Err(self.error(line, "a program takes a structure of parameters"));
                };
                let spec = TileSpec {
                    file: file.clone(),
                    params: fields.iter().filter(|f| f.0 != "memcpy_params").cloned().collect(),
                    host_link,
                };
                let number = intern(&mut self.layout.tile_specs, spec);
                self.layout.tiles.push((at.0, at.1, number));
                Ok(())
            }
            ("@set_color_config", [x, y, Expr::Name(color), fields]) => {
                let at = self.at(line, x, y)?;
                let config = config(line, color, fields).map_err(|e| self.error(line, e))?;
                let number = intern(&mut self.layout.config_specs, config);
                self.layout.configs.push((at.0, at.1, number));
                Ok(())
            }
            ("@export_name", [Expr::Str(name), kind, ..]) => {
                self.layout.exports.push((name.clone(), kind.clone()));
                Ok(())
            }
            _ => Err(self.error(line, format!("`{name}` with {} arguments is not emitted", args.len()))),
        }
    }

    fn at(&self, line: u32, x: &Expr, y: &Expr) -> Result<(u64, u64), ReadError> {
        let at = self.value(x).zip(self.value(y));
        at.ok_or_else(|| self.error(line, "the place of a PE is not a number"))
    }
}

/// The number of an equal row; the last ones first, since loops repeat.
fn intern<T: PartialEq>(table: &mut Vec<T>, row: T) -> u32 {
    let recent = table.iter().rev().take(64).position(|r| *r == row);
    let number = recent.map_or(table.len(), |back| table.len() - 1 - back);
    if number == table.len() {
        table.push(row);
    }
    narrow(number)
}

/// The numbers of `@range(T, end)` or `@range(T, start, end, step)`.
pub fn range_of(range: &Expr) -> Option<impl Iterator<Item = u64> + use<>> {
    let (start, end, step) = match range.call("@range")? {
        [_, Expr::Int(end)] => (0, *end, 1),
        [_, Expr::Int(start), Expr::Int(end), Expr::Int(step)] => (*start, *end, *step),
        _ => return None,
    };
    let step = usize::try_from(step).ok().filter(|&s| s > 0)?;
    Some((start..end).step_by(step))
}

//! Modules: the statements of imported files, with the names that the importer uses, and with their parameters replaced
//! by values.

use std::collections::{BTreeMap, BTreeSet};

use unisono_csl::Files;

use super::syntax::{self, Expr, Stmt};

type Given = BTreeMap<String, Expr>;

/// Returns whether a program imports files of its project, other than the operator's.
pub fn imports(program: &[Stmt]) -> bool {
    program.iter().any(|s| matches!(s, Stmt::Let(_, e) if imported(e).is_some()))
}

/// Returns the arguments of an import of a file, but not of a library or the operator.
fn imported(e: &Expr) -> Option<&[Expr]> {
    match e {
        Expr::Call(call, of) if call == "@import_module" => match &of[0] {
            Expr::Text(path) if path.starts_with('<') || path.ends_with("operator.csl") => None,
            _ => Some(of),
        },
        _ => None,
    }
}

fn parsed(files: &Files, file: &str) -> Vec<Stmt> {
    syntax::parse(&files.iter().find(|f| f.0 == file).unwrap_or_else(|| panic!("no file {file}")).1)
}

/// A module of the layout, which has constants and functions.
pub struct LayoutModule {
    given: Given,
    body: Vec<Stmt>,
}

impl LayoutModule {
    /// Returns the module that an expression imports, if it imports one.
    pub fn imported(files: &Files, e: &Expr) -> Option<Self> {
        let of = imported(e)?;
        let Expr::Text(file) = &of[0] else { panic!("{e:?}") };
        let Expr::Fields(fields) = &of[1] else { panic!("{e:?}") };
        let mut given: Given = fields.iter().cloned().collect();
        let body = parsed(files, file);
        for s in &body {
            if let Stmt::Let(name, value) = s {
                given.insert(name.clone(), value.clone());
            }
        }
        Some(Self { given, body })
    }

    /// Returns the value of a function call.
    pub fn call(&self, function: &str, arguments: &[u64]) -> Expr {
        let found = self.body.iter().find_map(|s| match s {
            Stmt::Function(name, params, body) if name == function => Some((params, body)),
            _ => None,
        });
        let (params, body) = found.unwrap_or_else(|| panic!("no function {function}"));
        let mut given = self.given.clone();
        given.extend(params.iter().cloned().zip(arguments.iter().map(|&n| Expr::Int(n))));
        returned(body, &Scope { prefix: String::new(), given, declared: BTreeSet::new() })
    }
}

fn returned(body: &[Stmt], scope: &Scope) -> Expr {
    for s in body {
        match s {
            Stmt::Return(e) => return scope.expr(e),
            Stmt::If(arms, _) => {
                if let Some(arm) = arms.iter().find(|a| scope.expr(&a.0) == Expr::Int(1)) {
                    return returned(&arm.1, scope);
                }
            }
            _ => panic!("{s:?} in a function that returns a value"),
        }
    }
    panic!("a function returns nothing")
}

/// Returns the statements of a file and of all files that it imports.
pub fn linked(files: &Files, file: &str, fields: &[(String, Expr)]) -> Vec<Stmt> {
    let mut all = Vec::new();
    link(files, file, String::new(), fields.iter().cloned().collect(), &mut all);
    all
}

fn link(files: &Files, file: &str, prefix: String, given: Given, all: &mut Vec<Stmt>) {
    let body = parsed(files, file);
    let declared = body.iter().filter_map(|s| match s {
        // The names of libraries stay unchanged, because the interpreter implements these libraries.
        Stmt::Let(_, Expr::Call(call, of))
            if call == "@import_module" && imported(&Expr::Call(call.clone(), of.clone())).is_none() =>
        {
            None
        }
        Stmt::Let(name, _) | Stmt::Function(name, ..) => Some(name.clone()),
        Stmt::Block(name, _) if name != "comptime" => Some(name.clone()),
        _ => None,
    });
    let scope = Scope { prefix, given, declared: declared.collect() };
    for s in &body {
        let Stmt::Let(name, e) = s else {
            all.push(scope.stmt(s));
            continue;
        };
        let Some(of) = imported(e) else {
            all.push(scope.stmt(s));
            continue;
        };
        let file = match &of[0] {
            Expr::Text(file) => file.clone(),
            Expr::Call(function, _) => {
                let is_it = |s: &&Stmt| matches!(s, Stmt::Block(name, _) if name == function);
                let Some(Stmt::Block(_, body)) = body.iter().find(is_it) else { panic!("no function {function}") };
                let Expr::Text(file) = returned(body, &scope) else { panic!("no file from {function}") };
                file
            }
            other => panic!("a module {other:?}"),
        };
        let Expr::Fields(fields) = scope.expr(&of[1]) else { panic!("{e:?}") };
        link(files, &file, format!("{}{name}.", scope.prefix), fields.into_iter().collect(), all);
    }
}

/// The names of one file, for the translation to names of the whole program.
struct Scope {
    prefix: String,
    given: Given,
    declared: BTreeSet<String>,
}

impl Scope {
    /// Returns a name as the importer of all files uses it.
    fn name(&self, name: &str) -> String {
        let first = name.split('.').next().unwrap();
        match self.given.get(first) {
            Some(Expr::Name(other)) if first == name => other.clone(),
            _ if self.declared.contains(first) => format!("{}{name}", self.prefix),
            _ => name.to_owned(),
        }
    }

    fn expr(&self, e: &Expr) -> Expr {
        let all = |of: &[Expr]| of.iter().map(|e| self.expr(e)).collect::<Vec<_>>();
        let pair = |a: &Expr, b: &Expr| (Box::new(self.expr(a)), Box::new(self.expr(b)));
        match e {
            Expr::Name(name) => self.given.get(name).cloned().unwrap_or_else(|| Expr::Name(self.name(name))),
            Expr::Call(call, of) if call == "@as" => self.expr(&of[1]),
            Expr::Call(call, of) if call == "@concat_structs" => {
                let (Expr::Fields(mut fields), Expr::Fields(more)) = (self.expr(&of[0]), self.expr(&of[1])) else {
                    panic!("{e:?}")
                };
                fields.extend(more);
                Expr::Fields(fields)
            }
            Expr::Call(call, of) => Expr::Call(self.name(call), all(of)),
            Expr::Fields(fields) => Expr::Fields(fields.iter().map(|(n, e)| (n.clone(), self.expr(e))).collect()),
            Expr::List(of) => Expr::List(all(of)),
            Expr::Access(extent, array, start) => Expr::Access(*extent, self.name(array), *start),
            Expr::Address(name) => Expr::Address(self.name(name)),
            Expr::Element(array, at) => match (self.given.get(array), self.expr(at)) {
                (Some(Expr::List(list)), Expr::Int(n)) => self.expr(&list[n as usize]),
                (_, at) => Expr::Element(self.name(array), Box::new(at)),
            },
            Expr::Plus(a, b) => match pair(a, b) {
                (a, b) if matches!((&*a, &*b), (Expr::Int(_), Expr::Int(_))) => Expr::Int(a.int() + b.int()),
                (a, b) => Expr::Plus(a, b),
            },
            Expr::Less(a, b) => {
                let (a, b) = pair(a, b);
                Expr::Less(a, b)
            }
            Expr::Equal(a, b) => match pair(a, b) {
                (a, b) if matches!((&*a, &*b), (Expr::Int(_), Expr::Int(_))) => Expr::Int(u64::from(a == b)),
                (a, b) => Expr::Equal(a, b),
            },
            Expr::Or(a, b) => {
                let (a, b) = pair(a, b);
                Expr::Or(a, b)
            }
            Expr::Int(_) | Expr::Text(_) | Expr::Array(_) => e.clone(),
        }
    }

    fn stmt(&self, s: &Stmt) -> Stmt {
        let all = |body: &[Stmt]| body.iter().map(|s| self.stmt(s)).collect::<Vec<_>>();
        match s {
            Stmt::Param(name) => Stmt::Param(name.clone()),
            Stmt::Let(name, e) => Stmt::Let(self.name(name), self.expr(e)),
            Stmt::Assign(name, operator, e) => Stmt::Assign(self.name(name), operator.clone(), self.expr(e)),
            Stmt::Do(e) => Stmt::Do(self.expr(e)),
            Stmt::Return(e) => Stmt::Return(self.expr(e)),
            Stmt::If(arms, last) => {
                Stmt::If(arms.iter().map(|(e, body)| (self.expr(e), all(body))).collect(), all(last))
            }
            Stmt::For(range, name, body) => Stmt::For(self.expr(range), name.clone(), all(body)),
            Stmt::Block(name, body) => Stmt::Block(self.name(name), all(body)),
            Stmt::Function(name, params, body) => Stmt::Function(self.name(name), params.clone(), all(body)),
        }
    }
}

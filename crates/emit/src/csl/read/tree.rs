//! The syntax tree of the subset of CSL that is emitted.

/// What has a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    Int(u64),
    Str(String),
    /// With dots: `memcpy.get_params`.
    Name(String),
    /// Of a builtin or a function.
    Call(String, Vec<Expr>),
    Struct(Vec<(String, Expr)>),
    Tuple(Vec<Expr>),
    Address(String),
    /// `|i|{extent} -> array[i + offset]`
    Access {
        extent: u64,
        array: String,
        offset: u64,
    },
    /// `[length]of`, or `[*]of` without a length.
    Array(Option<u64>, String),
    Function,
    Binary(Box<Expr>, &'static str, Box<Expr>),
    /// Joined by `or`.
    Any(Vec<Expr>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    pub line: u32,
    pub kind: StmtKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum StmtKind {
    Param(String, Expr),
    Let {
        name: String,
        value: Expr,
    },
    Assign {
        name: String,
        operator: &'static str,
        value: Expr,
    },
    Do(Expr),
    For {
        range: Expr,
        name: String,
        body: Vec<Stmt>,
    },
    /// Conditions with their bodies, and the last `else`.
    If {
        arms: Vec<(Expr, Vec<Stmt>)>,
        otherwise: Vec<Stmt>,
    },
    /// `fn`, `task`, `comptime` or `layout`, the name where it has one.
    Block(&'static str, String, Vec<Stmt>),
    Note(String),
}

impl Expr {
    pub fn int(&self) -> Option<u64> {
        match self {
            Expr::Int(n) => Some(*n),
            _ => None,
        }
    }

    pub fn name(&self) -> Option<&str> {
        match self {
            Expr::Name(n) => Some(n),
            _ => None,
        }
    }

    /// A field of a structure.
    pub fn field(&self, name: &str) -> Option<&Expr> {
        match self {
            Expr::Struct(fields) => fields.iter().find(|f| f.0 == name).map(|f| &f.1),
            _ => None,
        }
    }

    /// Arguments of a call of `name`.
    pub fn call(&self, name: &str) -> Option<&[Expr]> {
        match self {
            Expr::Call(n, args) if n == name => Some(args),
            _ => None,
        }
    }

    pub fn is_true(&self) -> bool {
        self.name() == Some("true")
    }
}

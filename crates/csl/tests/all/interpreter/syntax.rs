//! A parser for the emitted CSL, which shares no code with the emitter.

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Int(u64),
    Text(String),
    Name(String),
    Call(String, Vec<Expr>),
    Fields(Vec<(String, Expr)>),
    List(Vec<Expr>),
    /// `|i|{extent} -> array[i + offset]`
    Access(u64, String, u64),
    /// `[n]type`
    Array(u64),
    Less(Box<Expr>, Box<Expr>),
    Equal(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Address(String),
    /// `array[at]`
    Element(String, Box<Expr>),
    Plus(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Param(String),
    Let(String, Expr),
    Assign(String, String, Expr),
    Do(Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Expr, String, Vec<Stmt>),
    Block(String, Vec<Stmt>),
    /// The name, the names of the parameters, and the body of a function.
    Function(String, Vec<String>, Vec<Stmt>),
    Return(Expr),
}

impl Expr {
    pub fn field(&self, name: &str) -> Option<&Expr> {
        match self {
            Expr::Fields(fields) => fields.iter().find(|f| f.0 == name).map(|f| &f.1),
            _ => None,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Expr::Name(name) => name,
            other => panic!("{other:?} is no name"),
        }
    }

    pub fn int(&self) -> u64 {
        match self {
            Expr::Int(n) => *n,
            other => panic!("{other:?} is no number"),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let mut rest = line.split("//").next().unwrap().trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
            let length = if first == '"' {
                rest[1..].find('"').unwrap() + 2
            } else if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if ["->", "==", "-=", "+="].iter().any(|s| rest.starts_with(s)) {
                2
            } else {
                1
            };
            words.push(rest[..length].to_owned());
            rest = rest[length..].trim_start();
        }
    }
    words
}

struct Parser {
    words: Vec<String>,
    at: usize,
}

pub fn parse(text: &str) -> Vec<Stmt> {
    let mut p = Parser { words: words(text), at: 0 };
    let mut all = Vec::new();
    while p.at < p.words.len() {
        all.push(p.statement());
    }
    all
}

impl Parser {
    fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.words[self.at - 1].clone()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, word: &str) {
        assert!(self.take(word), "`{word}` before {:?}", &self.words[self.at..(self.at + 8).min(self.words.len())]);
    }

    fn block(&mut self) -> Vec<Stmt> {
        self.want("{");
        let mut all = Vec::new();
        while !self.take("}") {
            all.push(self.statement());
        }
        all
    }

    fn statement(&mut self) -> Stmt {
        if self.take("layout") || self.take("comptime") {
            return Stmt::Block(self.words[self.at - 1].clone(), self.block());
        }
        if self.take("fn") || self.take("task") {
            let name = self.next();
            self.want("(");
            let mut params = Vec::new();
            while !self.take(")") {
                params.push(self.next());
                self.want(":");
                while ![",", ")"].contains(&self.peek()) {
                    self.at += 1;
                }
                self.take(",");
            }
            while self.peek() != "{" {
                self.at += 1;
            }
            let body = self.block();
            return if params.is_empty() { Stmt::Block(name, body) } else { Stmt::Function(name, params, body) };
        }
        if self.take("return") {
            let value = self.value();
            self.want(";");
            return Stmt::Return(value);
        }
        if self.take("for") {
            self.want("(");
            let range = self.value();
            [")", "|"].iter().for_each(|w| self.want(w));
            let name = self.next();
            self.want("|");
            return Stmt::For(range, name, self.block());
        }
        if self.take("if") {
            let (mut arms, mut last) = (Vec::new(), Vec::new());
            loop {
                self.want("(");
                let condition = self.value();
                self.want(")");
                arms.push((condition, self.block()));
                if !self.take("else") {
                    break;
                }
                if !self.take("if") {
                    last = self.block();
                    break;
                }
            }
            return Stmt::If(arms, last);
        }
        if self.take("param") {
            let name = self.next();
            while !self.take(";") {
                self.at += 1;
            }
            return Stmt::Param(name);
        }
        if self.take("const") || self.take("var") {
            let name = self.next();
            while !self.take("=") {
                self.at += 1;
            }
            let value = self.value();
            self.want(";");
            return Stmt::Let(name, value);
        }
        let target = self.value();
        for operator in ["=", "+=", "-="] {
            if self.take(operator) {
                let value = self.value();
                self.want(";");
                return Stmt::Assign(target.name().to_owned(), operator.to_owned(), value);
            }
        }
        self.want(";");
        Stmt::Do(target)
    }

    fn value(&mut self) -> Expr {
        let left = self.compared();
        if self.take("or") { Expr::Or(Box::new(left), Box::new(self.value())) } else { left }
    }

    fn compared(&mut self) -> Expr {
        let left = self.sum();
        if self.take("<") {
            return Expr::Less(Box::new(left), Box::new(self.sum()));
        }
        if self.take("==") { Expr::Equal(Box::new(left), Box::new(self.sum())) } else { left }
    }

    fn sum(&mut self) -> Expr {
        let left = self.single();
        if self.take("+") { Expr::Plus(Box::new(left), Box::new(self.sum())) } else { left }
    }

    fn single(&mut self) -> Expr {
        if self.take("&") {
            return Expr::Address(self.next());
        }
        if self.take("|") {
            self.at += 1;
            ["|", "{"].iter().for_each(|w| self.want(w));
            let extent = self.next().parse().unwrap();
            ["}", "->"].iter().for_each(|w| self.want(w));
            let array = self.next();
            ["[", "i"].iter().for_each(|w| self.want(w));
            let offset = if self.take("+") { self.next().parse().unwrap() } else { 0 };
            self.want("]");
            return Expr::Access(extent, array, offset);
        }
        if self.take("[") {
            let n = if self.take("*") { 0 } else { self.next().parse().unwrap() };
            self.want("]");
            self.at += 1;
            return if self.peek() == "{" { self.structure() } else { Expr::Array(n) };
        }
        if self.take(".") {
            return self.structure();
        }
        let mut word = self.next();
        if let Ok(n) = word.parse() {
            return Expr::Int(n);
        }
        if let Some(text) = word.strip_prefix('"') {
            return Expr::Text(text.trim_end_matches('"').to_owned());
        }
        while self.take(".") {
            word = format!("{word}.{}", self.next());
        }
        if self.take("[") {
            let at = self.value();
            self.want("]");
            return Expr::Element(word, Box::new(at));
        }
        if !self.take("(") {
            return Expr::Name(word);
        }
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.value());
            self.take(",");
        }
        if word == "fn" {
            self.at += 1;
        }
        Expr::Call(word, arguments)
    }

    fn structure(&mut self) -> Expr {
        self.want("{");
        let (mut fields, mut items) = (Vec::new(), Vec::new());
        while !self.take("}") {
            if self.peek() == "." && self.words[self.at + 2] == "=" {
                self.at += 1;
                let name = self.next();
                self.at += 1;
                fields.push((name, self.value()));
            } else {
                items.push(self.value());
            }
            self.take(",");
        }
        if fields.is_empty() { Expr::List(items) } else { Expr::Fields(fields) }
    }
}

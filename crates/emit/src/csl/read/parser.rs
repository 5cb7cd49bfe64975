//! A parser by recursive descent: statements; values stand in `expression`. Nesting is bounded, so that no input can
//! exhaust the stack.

use super::{
    ReadError,
    lexer::{Token, lex},
    tree::{Expr, Stmt, StmtKind},
};

const DEEPEST: u32 = 48;

pub fn parse(file: &str, text: &str) -> Result<Vec<Stmt>, ReadError> {
    let mut parser = Parser { file, tokens: lex(file, text)?, at: 0, depth: 0 };
    let mut statements = Vec::new();
    while *parser.peek() != Token::End {
        statements.push(parser.statement()?);
    }
    Ok(statements)
}

pub(super) struct Parser<'a> {
    file: &'a str,
    pub(super) tokens: Vec<(u32, Token)>,
    pub(super) at: usize,
    depth: u32,
}

pub(super) type Parsed<T> = Result<T, ReadError>;

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.1)
    }

    pub(super) fn line(&self) -> u32 {
        let last = self.tokens.last();
        self.tokens.get(self.at).or(last).map_or(1, |t| t.0)
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub(super) fn fail<T>(&self, wanted: &str) -> Parsed<T> {
        let found = match self.peek() {
            Token::Name(n) | Token::Builtin(n) => format!("`{n}`"),
            Token::Int(n) => format!("`{n}`"),
            Token::Str(s) => format!("\"{s}\""),
            Token::Note(n) => format!("`//~ {n}`"),
            Token::Symbol(s) => format!("`{s}`"),
            Token::End => "the end".to_owned(),
        };
        Err(ReadError::new(self.file, self.line(), format!("{found} where {wanted} is expected")))
    }

    pub(super) fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            return Err(ReadError::new(self.file, self.line(), format!("nested deeper than {DEEPEST}")));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(s) if *s == symbol)
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn want(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { self.fail(&format!("`{symbol}`")) }
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(n) if n == word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn name(&mut self) -> Parsed<String> {
        match self.next() {
            Token::Name(n) => Ok(n),
            _ => {
                self.at -= 1;
                self.fail("a name")
            }
        }
    }

    pub(super) fn int(&mut self) -> Parsed<u64> {
        match self.next() {
            Token::Int(n) => Ok(n),
            _ => {
                self.at -= 1;
                self.fail("a number")
            }
        }
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        let line = self.line();
        let kind = self.deeper(Self::statement_kind)?;
        Ok(Stmt { line, kind })
    }

    fn statement_kind(&mut self) -> Parsed<StmtKind> {
        if let Token::Note(_) = self.peek() {
            let Token::Note(note) = self.next() else {
                return self.fail("a note");
            };
            return Ok(StmtKind::Note(note));
        }
        for word in ["comptime", "layout"] {
            if self.take_word(word) {
                return Ok(StmtKind::Block(word, String::new(), self.block()?));
            }
        }
        for word in ["fn", "task"] {
            if self.take_word(word) {
                let name = self.name()?;
                self.want("(")?;
                self.want(")")?;
                if !self.take_word("void") {
                    return self.fail("`void`");
                }
                return Ok(StmtKind::Block(word, name, self.block()?));
            }
        }
        if self.take_word("for") {
            return self.for_loop();
        }
        if self.take_word("if") {
            return self.conditions();
        }
        if self.take_word("param") {
            let name = self.name()?;
            self.want(":")?;
            let kind = self.type_name()?;
            self.want(";")?;
            return Ok(StmtKind::Param(name, kind));
        }
        if self.take_word("const") || self.take_word("var") {
            let name = self.name()?;
            if self.take(":") {
                self.type_name()?;
            }
            self.want("=")?;
            let value = self.expression()?;
            self.want(";")?;
            return Ok(StmtKind::Let { name, value });
        }
        let target = self.expression()?;
        for operator in ["=", "-=", "+="] {
            if self.take(operator) {
                let Expr::Name(name) = target else {
                    return self.fail("a name to assign to");
                };
                let value = self.expression()?;
                self.want(";")?;
                return Ok(StmtKind::Assign { name, operator, value });
            }
        }
        self.want(";")?;
        Ok(StmtKind::Do(target))
    }

    fn block(&mut self) -> Parsed<Vec<Stmt>> {
        self.want("{")?;
        let mut statements = Vec::new();
        while !self.take("}") {
            if *self.peek() == Token::End {
                return self.fail("`}`");
            }
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn for_loop(&mut self) -> Parsed<StmtKind> {
        self.want("(")?;
        let range = self.expression()?;
        self.want(")")?;
        self.want("|")?;
        let name = self.name()?;
        self.want("|")?;
        let body = self.block()?;
        Ok(StmtKind::For { range, name, body })
    }

    fn conditions(&mut self) -> Parsed<StmtKind> {
        let mut arms = Vec::new();
        loop {
            self.want("(")?;
            let condition = self.expression()?;
            self.want(")")?;
            arms.push((condition, self.block()?));
            if !self.take_word("else") {
                return Ok(StmtKind::If { arms, otherwise: Vec::new() });
            }
            if !self.take_word("if") {
                let otherwise = self.block()?;
                return Ok(StmtKind::If { arms, otherwise });
            }
        }
    }
}

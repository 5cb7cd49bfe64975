//! The values and types of the subset.

use super::{
    lexer::Token,
    parser::{Parsed, Parser},
    tree::Expr,
};

impl Parser<'_> {
    pub(super) fn type_name(&mut self) -> Parsed<Expr> {
        if self.take_word("fn") {
            self.want("(")?;
            self.want(")")?;
            self.name()?;
            return Ok(Expr::Function);
        }
        if self.take("[") {
            return self.array();
        }
        Ok(Expr::Name(self.name()?))
    }

    fn array(&mut self) -> Parsed<Expr> {
        let length = if self.take("*") { None } else { Some(self.int()?) };
        self.want("]")?;
        Ok(Expr::Array(length, self.name()?))
    }

    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let first = self.comparison()?;
        let mut any = vec![first];
        while self.take_word("or") {
            any.push(self.comparison()?);
        }
        match <[Expr; 1]>::try_from(any) {
            Ok([one]) => Ok(one),
            Err(any) => Ok(Expr::Any(any)),
        }
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let left = self.deeper(Self::operand)?;
        for operator in ["==", "<"] {
            if self.take(operator) {
                let right = self.deeper(Self::operand)?;
                return Ok(Expr::Binary(Box::new(left), operator, Box::new(right)));
            }
        }
        Ok(left)
    }

    fn operand(&mut self) -> Parsed<Expr> {
        if self.take(".") {
            return self.structure();
        }
        if self.take("|") {
            return self.access();
        }
        if self.take("&") {
            return Ok(Expr::Address(self.name()?));
        }
        if self.take("[") {
            return self.array();
        }
        match self.next() {
            Token::Int(n) => Ok(Expr::Int(n)),
            Token::Str(s) => Ok(Expr::Str(s)),
            Token::Builtin(name) => Ok(Expr::Call(name, self.arguments()?)),
            Token::Name(name) if name == "fn" => {
                self.at -= 1;
                self.type_name()
            }
            Token::Name(mut name) => {
                while self.take(".") {
                    name.push('.');
                    name.push_str(&self.name()?);
                }
                if self.is("(") {
                    return Ok(Expr::Call(name, self.arguments()?));
                }
                Ok(Expr::Name(name))
            }
            _ => {
                self.at -= 1;
                self.fail("a value")
            }
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.want("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.expression()?);
            if !self.take(",") {
                self.want(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    /// Behind the dot: `{ .a = 1, .b = 2 }` or `{ RAMP, EAST }`.
    fn structure(&mut self) -> Parsed<Expr> {
        self.want("{")?;
        let (mut fields, mut items) = (Vec::new(), Vec::new());
        while !self.take("}") {
            let is_field = self.is(".") && matches!(self.tokens.get(self.at + 1), Some((_, Token::Name(_))));
            if is_field {
                self.at += 1;
                let name = self.name()?;
                self.want("=")?;
                fields.push((name, self.expression()?));
            } else {
                items.push(self.expression()?);
            }
            if !self.take(",") {
                self.want("}")?;
                break;
            }
        }
        match (fields.is_empty(), items.is_empty()) {
            (false, false) => self.fail("a structure of fields alone or of values alone"),
            (true, _) => Ok(Expr::Tuple(items)),
            _ => Ok(Expr::Struct(fields)),
        }
    }

    /// Behind the first bar: `i|{256} -> input[i + 4]`.
    fn access(&mut self) -> Parsed<Expr> {
        let index = self.name()?;
        self.want("|")?;
        self.want("{")?;
        let extent = self.int()?;
        self.want("}")?;
        self.want("->")?;
        let array = self.name()?;
        self.want("[")?;
        if self.name()? != index {
            return self.fail("the index of the access");
        }
        let offset = if self.take("+") { self.int()? } else { 0 };
        self.want("]")?;
        Ok(Expr::Access { extent, array, offset })
    }
}

//! The parameters of an algorithm, written `K=V`, sorted by name.

use std::{collections::BTreeMap, fmt};

use crate::AlgorithmError;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.0.insert(key.to_owned(), value.to_string());
        self
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has_all<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        names.into_iter().all(|name| self.0.contains_key(name))
    }

    /// Returns the parameters whose names `names` accepts, such as those of one part of a composed algorithm.
    #[must_use]
    pub fn only(&self, names: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(k, _)| names(k)).map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// Returns a parameter as a whole number within `range`; `None` without the parameter.
    ///
    /// # Errors
    /// Returns an error for any other value.
    pub fn number(
        &self,
        algorithm: &'static str,
        param: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, AlgorithmError> {
        let Some(text) = self.get(param) else {
            return Ok(None);
        };
        match text.parse::<u32>() {
            Ok(n) if range.contains(&n) => Ok(Some(n)),
            _ => Err(AlgorithmError::Param {
                algorithm,
                param,
                found: text.to_owned(),
                accepted: format!("a whole number from {} to {}", range.start(), range.end()),
            }),
        }
    }

    /// Returns a parameter that is one of `choices`; the first choice without the parameter.
    ///
    /// # Errors
    /// Returns an error for any other value.
    pub fn choice<'a>(
        &self,
        algorithm: &'static str,
        param: &'static str,
        choices: &[&'a str],
    ) -> Result<&'a str, AlgorithmError> {
        let Some(text) = self.get(param) else {
            return Ok(choices[0]);
        };
        choices.iter().copied().find(|&c| c == text).ok_or_else(|| AlgorithmError::Param {
            algorithm,
            param,
            found: text.to_owned(),
            accepted: choices.join(", "),
        })
    }
}

impl FromIterator<(String, String)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (k, v)) in self.iter().enumerate() {
            write!(f, "{}{k}={v}", if n > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

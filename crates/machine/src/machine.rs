//! A machine of any kind, from TOML text.

use serde::{Deserialize, Serialize};

use crate::{Endpoint, InNetwork, MachineError, PRESETS, Wafer, network::Network};

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Machine {
    Endpoint(Endpoint),
    InNetwork(InNetwork),
    Network(Network),
    Wafer(Wafer),
}

/// Only the key that says which description follows; the full text is then read for its own messages with places.
#[derive(Deserialize)]
struct KindOnly {
    kind: String,
}

impl Machine {
    /// # Errors
    /// Text that is not TOML, an unknown kind or key, a value out of range; the message names `origin` and the line.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, MachineError> {
        Self::from_toml_with(text, origin, &|_| None)
    }

    /// The same with the text of files that the description names.
    ///
    /// # Errors
    /// As [`Machine::from_toml`]; a file that is not given.
    pub fn from_toml_with(
        text: &str,
        origin: &str,
        files: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, MachineError> {
        let wrong = |e: toml::de::Error| MachineError::Toml {
            origin: match e.span() {
                Some(span) => {
                    let line = text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
                    format!("{origin}, line {line}")
                }
                None => origin.to_owned(),
            },
            message: e.message().trim().replace('\n', ", "),
        };
        let kind: KindOnly = toml::from_str(text).map_err(wrong)?;
        match kind.kind.as_str() {
            "endpoint" => Ok(Machine::Endpoint(Endpoint::from_toml(text, origin, wrong)?)),
            "in-network" => {
                let machine: InNetwork = toml::from_str(text).map_err(wrong)?;
                machine.check(origin)?;
                Ok(Machine::InNetwork(machine))
            }
            "network" => {
                let mut network: Network = toml::from_str(text).map_err(wrong)?;
                network.take_in(files);
                network.check(origin)?;
                Ok(Machine::Network(network))
            }
            "wafer" => {
                let wafer: Wafer = toml::from_str(text).map_err(wrong)?;
                wafer.check(origin)?;
                Ok(Machine::Wafer(wafer))
            }
            other => Err(MachineError::Value {
                origin: origin.to_owned(),
                key: "kind",
                found: format!("'{other}'"),
                accepted: "endpoint, in-network, network, wafer",
            }),
        }
    }

    /// # Errors
    /// No preset has the name; the message lists those there are.
    pub fn preset(name: &str) -> Result<Self, MachineError> {
        match PRESETS.iter().find(|p| p.name == name) {
            Some(preset) => Self::from_toml(preset.toml, preset.name),
            None => Err(MachineError::UnknownPreset {
                found: name.to_owned(),
                presets: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Machine::Endpoint(e) => &e.name,
            Machine::InNetwork(i) => &i.name,
            Machine::Network(n) => &n.name,
            Machine::Wafer(w) => &w.name,
        }
    }

    pub fn kind(&self) -> &str {
        match self {
            Machine::Endpoint(e) => &e.kind,
            Machine::InNetwork(i) => &i.kind,
            Machine::Network(n) => &n.kind,
            Machine::Wafer(w) => &w.kind,
        }
    }

    pub fn summary(&self) -> &str {
        match self {
            Machine::Endpoint(e) => &e.summary,
            Machine::InNetwork(i) => &i.summary,
            Machine::Network(n) => &n.summary,
            Machine::Wafer(w) => &w.summary,
        }
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("descriptions hold only what TOML can write")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn presets_read_and_print_back() {
        for preset in PRESETS {
            let machine = Machine::preset(preset.name).unwrap();
            assert_eq!(machine.name(), preset.name);
            assert_eq!(Machine::from_toml(&machine.to_toml(), "printed").unwrap(), machine);
        }
    }

    #[test]
    fn shapes_fit_in_either_orientation() {
        let Machine::Wafer(w) = Machine::preset("wse2").unwrap() else { panic!("a wafer") };
        for text in ["512", "996", "757x996", "996x757", "1x1"] {
            assert!(w.choose(Some(text.parse::<Shape>().unwrap())).is_ok(), "{text}");
        }
        let e = w.choose(Some("1000x1000".parse().unwrap())).unwrap_err();
        assert_eq!(e.to_string(), "shape 1000x1000 does not fit on wse2, which has 757x996 PEs in either orientation");
        assert!(w.choose(None).unwrap_err().to_string().contains("say which part"));
        for text in ["", "0", "4x0", "-4", "4x", "4x4x4", "a"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let wse2 = PRESETS.iter().find(|p| p.name == "wse2").unwrap();
        let text = wse2.toml.replace("colors = 24", "colours = 24");
        let e = Machine::from_toml(&text, "my.toml").unwrap_err().to_string();
        assert!(e.starts_with("my.toml, line 11: unknown field `colours`"), "{e}");
        let e = Machine::from_toml("kind = 'toaster'", "t.toml").unwrap_err().to_string();
        assert_eq!(e, "t.toml: kind is 'toaster'; accepted is endpoint, in-network, network, wafer");
        let e = Machine::preset("wse9").unwrap_err().to_string();
        let names: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
        assert_eq!(
            e,
            format!("'wse9' is neither a machine preset nor a machine file; presets are {}", names.join(", "))
        );
    }
}

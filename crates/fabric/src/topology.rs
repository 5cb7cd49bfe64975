//! The text form of a network.
//!
//! One item per line, hosts before switches:
//! ```text
//! host c0
//! switch s1
//! cable c0 s1 MBIT LATENCY_US BUFFER_BYTES
//! ```

/// The maximum number of hosts: host i has the address 10.77.0.(i + 1), and 10.77.0.255 is the broadcast address.
pub const MOST_HOSTS: usize = 254;

/// A cable between two nodes, equal in both directions.
#[derive(Clone, Debug)]
pub struct Cable {
    /// Indices of the two nodes.
    pub ends: [usize; 2],
    /// Rate in Mbit/s.
    pub mbit: f64,
    /// Latency in microseconds.
    pub latency_us: f64,
    /// Greatest number of bytes that may wait at a port; a packet that exceeds them is dropped.
    pub buffer: u64,
}

/// Nodes, hosts first, and the cables between them.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Names of all nodes.
    pub names: Vec<String>,
    /// Number of hosts.
    pub hosts: usize,
    /// Cables, at most one between two nodes, because requests name a cable by its two nodes.
    pub cables: Vec<Cable>,
}

impl Topology {
    /// Reads the text form.
    ///
    /// # Errors
    /// Returns an error, with the line's number, for the first line that is not a host, switch or cable, is a host
    /// after a switch or beyond [`MOST_HOSTS`], has an unknown node, an invalid number or a rate of 0, or repeats a
    /// name or a cable.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self::default();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            found.add(&words).map_err(|reason| format!("line {}: {reason}", at + 1))?;
        }
        Ok(found)
    }

    /// Returns the index of the node with that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Adds a node.
    fn name(&mut self, name: &str) -> Result<(), String> {
        if self.node(name).is_some() {
            return Err(format!("a second node has the name '{name}'"));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    fn add(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            [] => {}
            ["host", name] if self.hosts == self.names.len() => {
                if self.hosts == MOST_HOSTS {
                    return Err(format!("host {name} is one more than the {MOST_HOSTS} that have an address"));
                }
                self.name(name)?;
                self.hosts += 1;
            }
            ["host", name] => return Err(format!("host {name} follows a switch; hosts come first")),
            ["switch", name] => self.name(name)?,
            ["cable", a, b, mbit, latency, buffer] => {
                let end = |name: &str| self.node(name).ok_or_else(|| format!("there is no node '{name}'"));
                let cable = Cable {
                    ends: [end(a)?, end(b)?],
                    mbit: number(mbit)?,
                    latency_us: number(latency)?,
                    buffer: number(buffer)? as u64,
                };
                if cable.mbit == 0.0 {
                    return Err(format!("the cable {a}-{b} has no rate"));
                }
                if a == b {
                    return Err(format!("the cable {a}-{b} has both ends at one node"));
                }
                let joins = |known: &Cable| cable.ends == known.ends || cable.ends == [known.ends[1], known.ends[0]];
                if self.cables.iter().any(joins) {
                    return Err(format!("a second cable joins {a} and {b}; state one with the rate of both"));
                }
                self.cables.push(cable);
            }
            _ => return Err(format!("'{}' is no host, switch or cable", words.join(" "))),
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|value| value.is_finite() && *value >= 0.0).ok_or_else(|| format!("'{text}' is no number from 0 on"))
}

//! The check of registers. It takes nothing from what made them: only the machine, the collective and where its ranks are.
//!
//! Of each embedding it proves:
//! 1. ports exist, channels and operator are the machine's and the collective's, the identifier is one of the machine's;
//! 2. what leaves a switch by a link is awaited at its other end on the same channel, and the other way round; so every logical
//!    edge is one link in one direction, used once;
//! 3. a switch's request and response parts fit the collective: for an allreduce the response is the inverse of the request;
//! 4. there is one root, and every switch hangs on it, so there is no circle;
//! 5. every rank gives and gets what the collective says, exactly those; for a scan the chain passes them in order.
//!
//! Of all embeddings together: segments cover the vector once.

use unisono_base::{Diagnostic, Diagnostics, NodeId, narrow};
use unisono_collective::{Collective, Kind};
use unisono_machine::{
    InNetwork,
    in_network::{Layout, MEMORY, Port},
};

use super::{
    Configured, Embedding,
    registers::{ENGINE, NONE, REQUEST, RESPONSE, Registers, ports},
};

/// What is wrong; nothing for registers that do what the collective says. `rank` of a finding is the switch.
pub fn check(machine: &InNetwork, layout: &Layout, configured: &Configured) -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    let c = &configured.collective;
    let rank_of = rank_of(layout, configured, &mut found);
    let mut next = 0;
    for e in &configured.embeddings {
        if e.first != next {
            found.push("segments", None, None, || {
                format!("identifier {} begins at element {}, where {next} is the next", e.identifier, e.first)
            });
        }
        next = e.first.saturating_add(e.elements);
        Check { machine, layout, c, e, rank_of: &rank_of, places: e.places(layout.switches()), found: &mut found }
            .run(configured);
    }
    if next != c.elements {
        found.push("segments", None, None, || format!("segments end at element {next} of {}", c.elements));
    }
    found.into_vec()
}

/// The rank at each switch; `u32::MAX` where there is none.
fn rank_of(layout: &Layout, configured: &Configured, found: &mut Diagnostics) -> Vec<u32> {
    let mut of = vec![u32::MAX; layout.switches() as usize];
    if configured.ranks.len() != configured.collective.ranks as usize {
        let (places, ranks) = (configured.ranks.len(), configured.collective.ranks);
        found.push("ranks", None, None, || format!("{places} cores are named for {ranks} ranks"));
    }
    for (rank, &switch) in configured.ranks.iter().enumerate() {
        match of.get_mut(switch as usize) {
            None => found.push("ranks", None, None, || format!("rank {rank} is at core {switch}, which is not there")),
            Some(place) if *place != u32::MAX => {
                found.push("ranks", None, None, || format!("ranks {place} and {rank} are both at core {switch}"));
            }
            Some(place) => *place = narrow(rank),
        }
    }
    of
}

struct Check<'a> {
    machine: &'a InNetwork,
    layout: &'a Layout,
    c: &'a Collective,
    e: &'a Embedding,
    rank_of: &'a [u32],
    places: Vec<u32>,
    found: &'a mut Diagnostics,
}

impl Check<'_> {
    fn run(&mut self, configured: &Configured) {
        if u32::from(self.e.identifier) >= self.machine.identifiers {
            let (id, most) = (self.e.identifier, self.machine.identifiers);
            self.found.push("identifier", None, None, || format!("identifier {id} is used; the machine has {most}"));
        }
        if !self.e.registers.is_sorted_by(|a, b| a.0 < b.0) {
            self.found.push("registers", None, None, || "switches are not named once each, in order".to_owned());
            return;
        }
        let reduces = self.c.kind.reduces();
        if reduces && !self.machine.operators.iter().any(|o| o == self.c.operator.name()) {
            let (name, known) = (self.c.operator.name(), self.machine.operators.join(", "));
            self.found.push("operator", None, None, || format!("the engine lacks {name}; it has {known}"));
        }
        let mut roots = Vec::new();
        for &(switch, r) in &self.e.registers {
            if self.found.is_full() {
                return;
            }
            if switch >= self.layout.switches() {
                self.say("registers", switch, || "it is not there".to_owned());
                continue;
            }
            self.fields(switch, &r);
            self.links(switch, &r);
            self.parts(switch, &r);
            let top = if reduces { r.request_output == NONE } else { r.response_input == MEMORY };
            if top {
                roots.push(switch);
            }
        }
        for (rank, &switch) in configured.ranks.iter().enumerate() {
            if self.at(switch).is_none() {
                self.say("participants", switch, || format!("rank {rank} is here, and the switch takes no part"));
            }
        }
        match roots[..] {
            [root] => self.tree(root),
            _ => self.found.push("root", None, None, || format!("there are {} roots, not one", roots.len())),
        }
    }

    fn say(&mut self, code: &'static str, switch: u32, what: impl FnOnce() -> String) {
        self.found.push(code, Some(NodeId(switch)), None, || format!("switch {switch}: {}", what()));
    }

    fn at(&self, switch: u32) -> Option<&Registers> {
        let place = *self.places.get(switch as usize)?;
        self.e.registers.get(place as usize).map(|(_, r)| r)
    }

    fn fields(&mut self, switch: u32, r: &Registers) {
        if (r.request_channel, r.response_channel) != (REQUEST, RESPONSE) {
            let found = (r.request_channel, r.response_channel);
            self.say("channel", switch, || {
                format!(
                    "requests are on channel {} and responses on {}, not {REQUEST} and {RESPONSE}",
                    found.0, found.1
                )
            });
        }
        if r.identifier != self.e.identifier {
            let (found, wanted) = (r.identifier, self.e.identifier);
            self.say("identifier", switch, || format!("these are registers of identifier {found}, not {wanted}"));
        }
        let wanted = (r.request_inputs != 0).then_some(self.c.operator);
        if r.operator != wanted {
            let name = |o: Option<unisono_collective::Operator>| o.map_or("none", |o| o.name());
            let found = r.operator;
            self.say("operator", switch, || format!("the operator is {}, not {}", name(found), name(wanted)));
        }
    }

    /// Both ends of every link agree.
    fn links(&mut self, switch: u32, r: &Registers) {
        let request = |r: &Registers, port: Port| r.request_inputs & 1 << port != 0;
        let response = |r: &Registers, port: Port| r.response_outputs & 1 << port != 0;
        if r.request_output != NONE {
            self.end("request output", switch, r.request_output, request);
        }
        if ![NONE, ENGINE, MEMORY].contains(&r.response_input) {
            self.end("response input", switch, r.response_input, response);
        }
        for port in ports(r.request_inputs & !(1 << MEMORY)) {
            self.end("request input", switch, port, |there, port| there.request_output == port);
        }
        for port in ports(r.response_outputs & !(1 << MEMORY)) {
            self.end("response output", switch, port, |there, port| there.response_input == port);
        }
    }

    fn end(&mut self, what: &'static str, switch: u32, port: Port, fits: impl Fn(&Registers, Port) -> bool) {
        let Some(peer) = self.layout.peer(switch, port) else {
            return self.say("port", switch, || format!("{what} {port} is no port with a link"));
        };
        if !self.at(peer.switch).is_some_and(|there| fits(there, peer.port)) {
            let (there, at) = (peer.switch, peer.port);
            self.say("link", switch, || format!("{what} {port} leads to switch {there}, whose port {at} does not fit"));
        }
    }

    /// The two parts of a switch make sense together, and the memory takes the part that its rank has.
    fn parts(&mut self, switch: u32, r: &Registers) {
        let rank = Some(self.rank_of[switch as usize]).filter(|&rank| rank != u32::MAX);
        let at_root = rank == Some(self.c.root);
        let top = r.request_output == NONE;
        let (shape, gives, gets) = match self.c.kind {
            Kind::Allreduce | Kind::Barrier => {
                let back = if top { r.response_input == ENGINE } else { r.response_input == r.request_output };
                (
                    back && r.response_outputs == r.request_inputs && r.request_inputs != 0,
                    rank.is_some(),
                    rank.is_some(),
                )
            }
            Kind::Reduce => {
                let ends = (r.response_input, r.response_outputs);
                let shape = if top { at_root && ends == (ENGINE, 1 << MEMORY) } else { ends == (NONE, 0) };
                (shape && r.request_inputs != 0, rank.is_some(), at_root)
            }
            Kind::Broadcast => {
                let quiet = top && r.request_inputs == 0;
                let source = (r.response_input == MEMORY) == at_root && ![NONE, ENGINE].contains(&r.response_input);
                // One rank alone has nobody to tell.
                let shape = quiet && source && (r.response_outputs != 0 || self.c.ranks == 1);
                (shape, at_root, rank.is_some() && !at_root)
            }
            Kind::Scan => {
                let chain = (r.request_inputs & !(1 << MEMORY)).count_ones() <= 1 && r.request_inputs != 0;
                let kept = if rank.is_some() { ENGINE } else { NONE };
                (chain && r.response_input == kept, rank.is_some(), rank.is_some())
            }
            other => {
                return self.say("collective", switch, || format!("no registers make a {other}"));
            }
        };
        // Only the memory hears of a reduce's and a scan's results.
        let only_memory = !matches!(self.c.kind, Kind::Scan) || r.response_outputs & !(1 << MEMORY) == 0;
        if !shape || !only_memory {
            let kind = self.c.kind;
            self.say("parts", switch, || format!("the request and response registers do not make {kind}"));
        }
        for (what, does, should) in [("gives", r.sends(), gives), ("gets", r.receives(), gets)] {
            if does != should {
                self.say("participants", switch, || {
                    let who = rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}"));
                    format!("{who} is here, and its memory {} data", negated(what, does))
                });
            }
        }
    }

    /// Every switch hangs on the root.
    fn tree(&mut self, root: u32) {
        let mut reached = 0_usize;
        let mut waiting = vec![root];
        let mut ranks = Vec::new();
        while let Some(switch) = waiting.pop() {
            reached += 1;
            if reached > self.e.registers.len() {
                break;
            }
            let Some(r) = self.at(switch) else { continue };
            if self.c.kind == Kind::Scan && r.sends() {
                ranks.push(self.rank_of[switch as usize]);
            }
            let below = if self.c.kind.reduces() { r.request_inputs } else { r.response_outputs };
            for port in ports(below & !(1 << MEMORY)) {
                waiting.extend(self.layout.peer(switch, port).map(|peer| peer.switch));
            }
        }
        let all = self.e.registers.len();
        if reached != all {
            self.say("tree", root, || format!("{reached} of the {all} switches hang on this root"));
        }
        if !ranks.is_sorted_by(|a, b| a > b) {
            self.say("order", root, || "the chain does not pass the ranks in order".to_owned());
        }
    }
}

fn negated(verb: &'static str, does: bool) -> &'static str {
    match (verb, does) {
        ("gives", true) => "gives",
        ("gives", false) => "does not give",
        (_, true) => "gets",
        (_, false) => "does not get",
    }
}

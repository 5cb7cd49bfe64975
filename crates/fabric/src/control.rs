//! Requests on the control socket.
//!
//! A request is one line: `stats`, `fail A B`, `restore A B` or `down`. The answer of `stats` has a line for each port:
//! `FROM TO up|down BYTES PACKETS DROPS PEAK_BYTES BUSY_NS`. The others answer `ok`, or a line that begins with `error`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use unisono_fabric::{Network, Topology};

/// The longest that a client may keep the fabric from its packets.
const PATIENCE: Duration = Duration::from_millis(100);

/// Answers one request, and returns whether it ends the fabric.
pub fn answer(listener: &UnixListener, topology: &Topology, network: &mut Network) -> bool {
    let Ok((mut client, _)) = listener.accept() else { return false };
    let Some(request) = line(&client) else { return false };
    let words: Vec<&str> = request.split_whitespace().collect();
    let answer = match *words.as_slice() {
        ["stats"] => stats(topology, network),
        [what @ ("fail" | "restore"), a, b] => match (topology.node(a), topology.node(b)) {
            (Some(a), Some(b)) if network.set_up(a, b, what == "restore") => "ok\n".to_owned(),
            _ => format!("error: no cable joins {a} and {b}\n"),
        },
        ["down"] => return true,
        _ => format!("error: '{}' is no request\n", request.trim_end()),
    };
    // A client that has gone needs no answer.
    let _ = client.write_all(answer.as_bytes());
    false
}

fn line(client: &UnixStream) -> Option<String> {
    client.set_read_timeout(Some(PATIENCE)).ok()?;
    client.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut text = String::new();
    BufReader::new(client).read_line(&mut text).ok()?;
    Some(text)
}

fn stats(topology: &Topology, network: &Network) -> String {
    let mut text = String::new();
    for port in &network.ports {
        let state = if port.up { "up" } else { "down" };
        let (from, to) = (&topology.names[port.from], &topology.names[port.to]);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{from} {to} {state} {} {} {} {} {}",
            port.bytes, port.packets, port.drops, port.peak, port.busy
        );
    }
    text
}

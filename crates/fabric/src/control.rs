//! Requests on the control socket.
//!
//! A request is one line: `stats`, `fail A B`, `restore A B` or `down`. The answer of `stats` has a line for each port:
//! `FROM TO up|down BYTES PACKETS DROPS PEAK_BYTES BUSY_NS`. `fail` and `restore` answer `ok`; `down` ends the fabric
//! without an answer; an error is a line that begins with `error`. A client that reads slowly does not delay packets:
//! its answer is written as the client reads.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use unisono_fabric::{Network, Topology};

/// Greatest length of a request in bytes; a client that sends more is dropped.
const LONGEST: usize = 1000;

pub struct Control {
    listener: UnixListener,
    clients: Vec<Client>,
}

struct Client {
    stream: UnixStream,
    request: Vec<u8>,
    /// Bytes of the answer that are still to be written; `None` before the request is complete.
    answer: Option<Vec<u8>>,
}

impl Control {
    /// Creates the control socket; its file appears once the socket accepts connections.
    pub fn new(name: &str) -> Result<Self> {
        // A socket's file exists before the socket listens; a client that connects in between would be refused.
        let unready = format!("{name}.unready");
        let listener = UnixListener::bind(&unready)?;
        listener.set_nonblocking(true)?;
        std::fs::rename(unready, name)?;
        Ok(Self { listener, clients: Vec::new() })
    }

    /// Returns the descriptors on which requests arrive; -1 for a client that gets its answer.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let clients =
            self.clients.iter().map(|client| if client.answer.is_none() { client.stream.as_raw_fd() } else { -1 });
        [self.listener.as_raw_fd()].into_iter().chain(clients)
    }

    /// Returns whether a part of an answer is still to be written to a client.
    pub fn is_busy(&self) -> bool {
        self.clients.iter().any(|client| client.answer.is_some())
    }

    /// Reads requests and writes answers without waiting; returns whether a request ends the fabric.
    pub fn serve(&mut self, topology: &Topology, network: &mut Network) -> bool {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, request: Vec::new(), answer: None });
            }
        }
        let mut ends = false;
        self.clients.retain_mut(|client| {
            if client.answer.is_none() {
                match client.read() {
                    Some(true) => {}
                    Some(false) => return true,
                    None => return false,
                }
                let request = String::from_utf8_lossy(&client.request);
                let Some(answer) = answer(&request, topology, network) else {
                    ends = true;
                    return false;
                };
                client.answer = Some(answer.into_bytes());
            }
            client.write()
        });
        ends
    }
}

impl Client {
    /// Reads the available bytes. Returns true if the request is complete, false if more bytes are needed, and `None`
    /// if the client must be disconnected.
    fn read(&mut self) -> Option<bool> {
        let mut part = [0; LONGEST];
        match self.stream.read(&mut part) {
            Ok(0) => None,
            Ok(bytes) => {
                self.request.extend_from_slice(&part[..bytes]);
                (self.request.len() <= LONGEST).then(|| self.request.ends_with(b"\n"))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Some(false),
            Err(_) => None,
        }
    }

    /// Writes as many bytes of the answer as the socket accepts. Returns true if the client stays connected, either
    /// because its request is not complete or because bytes of the answer remain; false if the answer is complete or
    /// the socket has failed.
    fn write(&mut self) -> bool {
        let Some(answer) = &mut self.answer else { return true };
        match self.stream.write(answer) {
            Ok(bytes) => {
                answer.drain(..bytes);
                bytes > 0 && !answer.is_empty()
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Returns the answer to a request; `None` for the request that ends the fabric.
fn answer(request: &str, topology: &Topology, network: &mut Network) -> Option<String> {
    let words: Vec<&str> = request.split_whitespace().collect();
    Some(match *words.as_slice() {
        ["stats"] => stats(topology, network),
        [what @ ("fail" | "restore"), a, b] => match (topology.node(a), topology.node(b)) {
            (Some(a), Some(b)) if network.set_up(a, b, what == "restore") => "ok\n".to_owned(),
            _ => format!("error: no cable joins {a} and {b}\n"),
        },
        ["down"] => return None,
        _ => format!("error: '{}' is no request\n", request.trim_end()),
    })
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

//! The program `unisono-fabric`: connects the network devices of namespaces by a network of switches.
//!
//! `unisono-fabric TOPOLOGY CONTROL-SOCKET SETUP`: for each host of the topology (`topology.rs`) the program makes a
//! network namespace with a device `eth0` (TUN: IP packets without Ethernet), and starts `sh SETUP NAME` there, in
//! separate mount, UTS and IPC namespaces. SETUP prints a line when the host is ready, and keeps the namespaces until
//! it ends. The address of host i is 10.77.0.(i + 1).
//!
//! The program should be the first process of a process namespace: all processes in the namespace then end with it.
//! Errors are one line on standard error.

mod control;
mod system;

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use control::Control;
use unisono_fabric::network::MTU;
use unisono_fabric::{Network, Topology};

/// The maximum number of packets that are read from one host before other hosts are read.
const PACKETS_A_TURN: usize = 16;
/// Longest wait for packets and requests, in nanoseconds.
const LONGEST_WAIT: i64 = 1_000_000_000;
/// Nanoseconds between two attempts to write more of an answer to a client that reads slowly.
const WAIT_FOR_CLIENT: i64 = 1_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [topology, socket, setup] = arguments.as_slice() else {
        eprintln!("usage: unisono-fabric TOPOLOGY CONTROL-SOCKET SETUP");
        return ExitCode::from(2);
    };
    match run(topology, socket, setup) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(topology: &str, socket: &str, setup: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(topology).map_err(|error| format!("'{topology}': {error}"))?;
    let topology = Topology::parse(&text)?;
    let devices = hosts(&topology, setup)?;
    system::hurry();
    let control = Control::new(socket).map_err(|error| format!("'{socket}': {error}"))?;
    carry(&topology, &devices, control)
}

/// Makes the namespaces of all hosts, waits until each is set up, and returns their network devices.
fn hosts(topology: &Topology, setup: &str) -> Result<Vec<File>, String> {
    let mut devices = Vec::new();
    let mut outputs = Vec::new();
    for name in &topology.names[..topology.hosts] {
        // The child process inherits this namespace, and the device stays in it.
        system::new_network().map_err(|error| format!("no network namespace: {error}"))?;
        devices.push(system::device("eth0").map_err(|error| format!("no network device (/dev/net/tun): {error}"))?);
        let started = Command::new("unshare")
            .args(["--mount", "--uts", "--ipc", "sh", setup, name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let child = started.map_err(|error| format!("unshare: {error}"))?;
        outputs.push((name, child.stdout));
    }
    for (name, output) in outputs {
        let mut line = String::new();
        let read = output.map_or(Ok(0), |output| BufReader::new(output).read_line(&mut line));
        if !read.is_ok_and(|bytes| bytes > 0) {
            return Err(format!("host {name} was not set up"));
        }
    }
    // From this point on, orphaned processes become children of this process, which does not wait for them.
    system::ignore_children();
    Ok(devices)
}

/// Transfers packets between the devices until a request ends the program.
fn carry(topology: &Topology, devices: &[File], mut control: Control) -> Result<(), String> {
    let mut network = Network::new(topology);
    let begin = Instant::now();
    let clock = || i64::try_from(begin.elapsed().as_nanos()).unwrap_or(i64::MAX);
    let mut waits = Vec::new();
    loop {
        let now = clock();
        network.advance(now, |host, data| {
            // The kernel takes a packet or drops it, as a network card does.
            let _ = (&devices[host]).write(data);
        });
        waits.clear();
        let mut wake = network.next().unwrap_or(now + LONGEST_WAIT);
        for (host, device) in devices.iter().enumerate() {
            let free = network.free_at(host);
            if free > now {
                wake = wake.min(free);
            }
            waits.push(if free > now { -1 } else { device.as_raw_fd() });
        }
        waits.extend(control.descriptors());
        if control.is_busy() {
            wake = wake.min(now + WAIT_FOR_CLIENT);
        }
        let ready = system::wait(&waits, (wake - clock()).clamp(0, LONGEST_WAIT)).map_err(|error| error.to_string())?;
        for (host, device) in devices.iter().enumerate() {
            if ready[host] {
                read_host(&mut network, host, device, &clock)
                    .map_err(|error| format!("host {} has gone: {error}", topology.names[host]))?;
            }
        }
        let asked = control.is_busy() || ready[devices.len()..].contains(&true);
        if asked && control.serve(topology, &mut network) {
            return Ok(());
        }
    }
}

/// Sends up to [`PACKETS_A_TURN`] packets of a host, as long as [`Network::free_at`] permits. Drops packets that are
/// not for another host; returns an error if the host's namespace has ended.
fn read_host(network: &mut Network, host: usize, mut device: &File, clock: &impl Fn() -> i64) -> std::io::Result<()> {
    for _ in 0..PACKETS_A_TURN {
        let now = clock();
        if network.free_at(host) > now {
            break;
        }
        let mut data = network.buffer();
        data.resize(MTU, 0);
        match device.read(&mut data) {
            Ok(bytes) => data.truncate(bytes),
            Err(error) => {
                network.give_back(data);
                return if error.kind() == ErrorKind::WouldBlock { Ok(()) } else { Err(error) };
            }
        }
        match destination(&data) {
            Some(to) if to != host && to < network.hosts() => network.send(host, to, data, now),
            _ => network.give_back(data),
        }
    }
    Ok(())
}

/// Returns the index of the host that an IPv4 packet is addressed to, which may not exist; `None` for any other packet.
fn destination(packet: &[u8]) -> Option<usize> {
    match packet {
        [first, ..] if first >> 4 == 4 && packet.len() >= 20 && packet[16..19] == [10, 77, 0] => {
            usize::from(packet[19]).checked_sub(1)
        }
        _ => None,
    }
}

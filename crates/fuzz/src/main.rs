//! `unisono-fuzz`: runs fuzz targets for a time, each in child processes.
//!
//! ```text
//! unisono-fuzz                       all targets, or FUZZ_TARGET (a,b,c), for FUZZ_SECONDS (3600) by FUZZ_SEED (the time)
//! unisono-fuzz one TARGET FILE...    runs files, and prints what fails
//! unisono-fuzz list                  lists the targets
//! ```
//! Files are in FUZZ_FOLDER (`target/fuzz`): `artifacts/TARGET/` has inputs that fail, each with a `.why` file;
//! `grown/TARGET/` has inputs that reached new code. FUZZ_CPU_SECONDS (10) limits one input.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use unisono_fuzz::{
    FuzzTarget, TARGETS,
    guard::{self, Bounds, Fault, HANG},
    memory::OVER,
    session::{self, Folders},
};

/// The maximum number of seconds for which a target runs before the next target.
const TURN: u64 = 120;
/// Number of inputs that may end a child process before the target's turn ends.
const MOST_DEATHS: u32 = 8;
/// Stack size of the thread that runs inputs, equal to that of the interpreter's threads.
const STACK_BYTES: usize = 8 << 20;

type Done<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn setting(name: &str, usual: u64) -> Done<u64> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|_| format!("{name} is '{text}'; accepted is a whole number").into()),
        Err(_) => Ok(usual),
    }
}

fn folder() -> PathBuf {
    env::var_os("FUZZ_FOLDER").map_or_else(|| PathBuf::from("target/fuzz"), PathBuf::from)
}

fn bounds() -> Done<Bounds> {
    Ok(Bounds { cpu_seconds: setting("FUZZ_CPU_SECONDS", 10)?, ..Bounds::default() })
}

fn find(name: &str) -> Done<&'static FuzzTarget> {
    let names = || TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    let found = TARGETS.iter().copied().find(|t| t.name == name);
    found.ok_or_else(|| format!("'{name}' is not a target; there are {}", names()).into())
}

fn in_thread(work: impl FnOnce() -> Done<ExitCode> + Send + 'static) -> Done<ExitCode> {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?;
    thread.join().map_err(|_| "the thread of the inputs panicked")?
}

fn child(name: &str, seconds: u64, seed: u64) -> Done<ExitCode> {
    let (target, bounds) = (find(name)?, bounds()?);
    in_thread(move || {
        let time = Duration::from_secs(seconds);
        let tally = session::run(target, &Folders::new(&folder()), &bounds, time, u64::MAX, seed)?;
        println!(
            "{:<18} {:>9} runs, {:>8} accepted, {:>5} new seeds, {:>6} of {} edges, {} failed",
            target.name, tally.runs, tally.accepted, tally.grown, tally.edges.0, tally.edges.1, tally.faults
        );
        Ok(ExitCode::from(u8::from(tally.faults > 0)))
    })
}

fn one(name: &str, files: &[String]) -> Done<ExitCode> {
    let (target, bounds) = (find(name)?, bounds()?);
    let files = files.to_vec();
    in_thread(move || {
        guard::start(&bounds);
        let mut failed = false;
        for path in files {
            let begin = Instant::now();
            let outcome = guard::run(target, &fs::read(&path)?, &bounds);
            let took = begin.elapsed().as_secs_f64();
            match &outcome {
                Ok(true) => println!("{path}: accepted ({took:.2} s)"),
                Ok(false) => println!("{path}: refused ({took:.2} s)"),
                Err(fault) => println!("{path}: FAILED ({took:.2} s): {}", fault.message),
            }
            failed |= outcome.is_err();
        }
        Ok(ExitCode::from(u8::from(failed)))
    })
}

/// Returns the reason why a child ended, derived from the last lines of its standard error.
fn death(status: &str, said: &str) -> Fault {
    let kinds = [(HANG, "hang"), (OVER, "memory"), ("has overflowed its stack", "stack")];
    let kind = kinds.iter().find(|(line, _)| said.contains(line)).map_or("died", |(_, kind)| kind);
    let last: Vec<&str> = said.lines().rev().take(6).collect();
    Fault { kind: kind.to_owned(), message: format!("{status}; {}", last.join(" / ")) }
}

/// Runs a target for `seconds`, or until [`MOST_DEATHS`] children have died; returns whether nothing failed.
fn turn(target: &'static FuzzTarget, seconds: u64, seed: u64) -> Done<bool> {
    let (begin, folders) = (Instant::now(), Folders::new(&folder()));
    let mut sound = true;
    for death_count in 0..MOST_DEATHS {
        let left = seconds.saturating_sub(begin.elapsed().as_secs());
        if left == 0 {
            break;
        }
        let arguments = ["child", target.name, &left.to_string(), &(seed + u64::from(death_count)).to_string()];
        let ran =
            Command::new(env::current_exe()?).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        print!("{}", String::from_utf8_lossy(&ran.stdout));
        if let Some(code) = ran.status.code().filter(|code| (0..=1).contains(code) && !ran.stdout.is_empty()) {
            sound &= code == 0;
            break;
        }
        sound = false;
        let fault = death(&ran.status.to_string(), &String::from_utf8_lossy(&ran.stderr));
        println!("{:<18} {}: {}", target.name, fault.kind, fault.message);
        let input = fs::read(folders.current(target)).unwrap_or_default();
        folders.keep(target, &input, &fault)?;
    }
    Ok(sound)
}

fn all() -> Done<ExitCode> {
    let seconds = setting("FUZZ_SECONDS", 3600)?;
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let mut seed = setting("FUZZ_SEED", clock)?;
    let named = env::var("FUZZ_TARGET").unwrap_or_default();
    let targets: Vec<&FuzzTarget> = match named.as_str() {
        "" | "all" => TARGETS.to_vec(),
        names => names.split(',').map(find).collect::<Done<_>>()?,
    };
    println!("{} targets for {seconds} s from seed {seed}; files are in {}", targets.len(), folder().display());
    let share = (seconds / targets.len() as u64).clamp(1, TURN);
    let (begin, mut sound) = (Instant::now(), true);
    'rounds: loop {
        for &target in &targets {
            let left = seconds.saturating_sub(begin.elapsed().as_secs());
            if left == 0 {
                break 'rounds;
            }
            sound &= turn(target, share.min(left), seed)?;
            seed = seed.wrapping_add(1 << 16);
        }
    }
    println!("{}", if sound { "nothing failed" } else { "inputs failed: see artifacts/ in the folder" });
    Ok(ExitCode::from(u8::from(!sound)))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => all(),
        ["list"] => {
            TARGETS.iter().for_each(|t| println!("{:<18} {}", t.name, t.summary));
            Ok(ExitCode::SUCCESS)
        }
        ["one", target, _, ..] => one(target, &arguments[2..]),
        ["child", target, seconds, seed] => match (seconds.parse(), seed.parse()) {
            (Ok(seconds), Ok(seed)) => child(target, seconds, seed),
            _ => Err("a child takes a target, seconds and a seed".into()),
        },
        _ => Err("accepted are no arguments, 'list', and 'one TARGET FILE...'".into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

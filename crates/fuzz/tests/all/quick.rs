//! Runs every target briefly: all inputs of the corpus, then changed inputs from a fixed seed. `make fuzz` runs longer.

use crate::soak;

use std::{
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use unisono_fuzz::{
    FuzzTarget, Random, TARGETS, corpus,
    guard::{self, Bounds, Fault},
    mutate::Pool,
};

/// CPU time depends on the machine, so this limit is far above that of any admitted work.
const BOUNDS: Bounds = Bounds { cpu_seconds: 60, base_bytes: 512 << 20, factor: 1 << 10 };
const SEED: u64 = 13;

/// Lock for one input at a time, because memory and CPU time are counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

pub fn in_turn<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    guard::start(&BOUNDS);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap()
    })
}

/// Describes a failure, with the input as text.
fn shown(target: &FuzzTarget, input: &[u8], of: &str, fault: &Fault) -> String {
    format!("{}, {of}: {}\n{}", target.name, fault.message, input.escape_ascii())
}

#[test]
fn inputs_of_the_corpus_do_not_fail() {
    let failed = in_turn(|| {
        let mut failed = Vec::new();
        for &target in TARGETS {
            let inputs = corpus::inputs(target);
            assert!(!inputs.is_empty(), "the corpus has no inputs for {}", target.name);
            let mut accepted = 0;
            for (path, input) in inputs {
                match guard::run(target, &input, &BOUNDS) {
                    Ok(taken) => accepted += usize::from(taken),
                    Err(fault) => failed.push(shown(target, &input, &path.display().to_string(), &fault)),
                }
            }
            assert!(accepted > 0, "no input of the corpus is accepted by {}", target.name);
        }
        failed
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Environment variable that selects the inputs that a child process of [`changed_inputs_do_not_fail`] runs, as
/// `FIRST/STEP`.
const PART: &str = "UNISONO_FUZZ_PART";

/// Memory and CPU time are counted for each process, so every core runs a process with every n-th input.
#[test]
fn changed_inputs_do_not_fail() {
    if let Ok(part) = std::env::var(PART) {
        let (first, step) = part.split_once('/').expect("FIRST/STEP");
        return change(first.parse().unwrap(), step.parse().unwrap());
    }
    let processes = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let part = |first| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "quick::changed_inputs_do_not_fail"]).env(PART, format!("{first}/{processes}"));
        program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begun: Vec<_> = (0..processes).map(part).collect();
    let ended = begun.into_iter().map(|process| process.wait_with_output().unwrap());
    let failed: Vec<String> = ended
        .filter(|ended| !ended.status.success() || !String::from_utf8_lossy(&ended.stdout).contains(" 1 passed"))
        .map(|ended| format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn change(first: u32, step: u32) {
    let failed = in_turn(|| {
        let mut failed = Vec::new();
        for &target in TARGETS {
            let pool = Pool::new(corpus::seeds(target, None));
            let mut random = Random::new(SEED);
            for n in 0..soak::cases(target.quick_runs) {
                let input = pool.next(target.form, &mut random);
                if n % step != first {
                    continue;
                }
                if let Err(fault) = guard::run(target, &input, &BOUNDS) {
                    failed.push(shown(target, &input, &format!("input {n} of seed {SEED}"), &fault));
                    break;
                }
            }
        }
        failed
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// A target that executes the command in its input.
const OBEYS: FuzzTarget = FuzzTarget::new("obeys", "panics, allocates or computes", |input| match input {
    b"panic" => panic!("as asked"),
    b"allocate" => vec![1u8; 3 << 20].iter().all(|&byte| byte == 1),
    b"compute" => loop {
        unisono_base::interrupt::poll();
    },
    _ => input == b"accept",
});

#[test]
fn faults_are_found() {
    let bounds = Bounds { cpu_seconds: 0, base_bytes: 2 << 20, factor: 0 };
    let found = in_turn(|| {
        let usual =
            ["panic", "allocate", "accept", "refuse"].map(|input| guard::run(&OBEYS, input.as_bytes(), &bounds));
        guard::start(&bounds);
        let slow = guard::run(&OBEYS, b"compute", &bounds);
        guard::start(&BOUNDS);
        (usual, slow)
    });
    let ([panicked, allocated, accepted, refused], slow) = found;
    let panicked = panicked.unwrap_err();
    assert!(panicked.kind.starts_with("panic-fuzz-tests-all-quick-rs-"), "{}", panicked.kind);
    assert!(panicked.message.ends_with("as asked"), "{}", panicked.message);
    assert_eq!(allocated.unwrap_err().kind, "memory");
    assert_eq!((accepted, refused), (Ok(true), Ok(false)));
    assert_eq!(slow.unwrap_err().kind, "slow");
}

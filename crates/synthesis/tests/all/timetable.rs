//! Tests of `timetable`.

use unisono_synthesis::{Runs, internals::jobs::Jobs};

fn begins_and_end(jobs: &Jobs, rates: &[f64], hops: &[f64]) -> (Vec<f64>, f64) {
    let begins = jobs.begins(rates, hops);
    let end = jobs.end(&begins, (rates, hops), Runs::Down, None);
    (begins, end)
}

#[test]
fn the_longest_chain_goes_first() {
    let mut jobs = Jobs::default();
    let [first, second] = [[0], [1]].map(|links| jobs.class(&links));
    // Two messages use link 0; the second is followed by a message on link 1.
    jobs.add(None, first);
    let before = jobs.add(None, first);
    jobs.add(Some(before), second);
    assert_eq!(begins_and_end(&jobs, &[1.0, 0.5], &[0.25; 2]), (vec![1.0, 0.0, 1.25], 3.5));
}

/// Two trees with four chunks each leave on link 0. Each tree continues on a separate link, which is half as fast. With
/// turns, both of these links are always busy. If all chunks of one tree went first, the last chunk of the other tree
/// would end at 12.
#[test]
fn trees_take_turns() {
    let mut jobs = Jobs::default();
    let [out, one, other] = [0, 1, 2].map(|link| jobs.class(&[link]));
    let again = jobs.class(&[0]);
    for (first, then) in [(out, one), (again, other)] {
        for chunk in 0..4 {
            let turn = (f64::from(chunk) + 0.5) / 4.0;
            let before = jobs.add_in_turn(None, first, turn);
            jobs.add_in_turn(Some(before), then, turn);
        }
    }
    assert_eq!(begins_and_end(&jobs, &[1.0, 0.5, 0.5], &[0.0; 3]).1, 10.0);
}

/// A message on link 1 follows the first message on link 0. Its data arrives at 1 and is expected at 3. In that order
/// all messages end by 2.
#[test]
fn data_is_expected_late() {
    let mut jobs = Jobs::with_slack(2.0);
    let [first, second] = [[0], [1]].map(|links| jobs.class(&links));
    let before = jobs.add(None, first);
    jobs.add(Some(before), second);
    jobs.add(None, first);
    assert_eq!(begins_and_end(&jobs, &[1.0; 2], &[0.0; 2]), (vec![0.0, 3.0, 1.0], 2.0));
}

/// A rank with one send machine sends on two links. Each message occupies the machine until the last of its four
/// packets starts.
#[test]
fn messages_wait_for_a_machine_of_their_rank() {
    let mut jobs = Jobs::default();
    let classes = [[0], [1]].map(|links| jobs.class(&links));
    let sender = jobs.sender(1);
    for class in classes {
        jobs.sent_by(class, sender, 0.75);
        jobs.add(None, class);
    }
    let (begins, end) = begins_and_end(&jobs, &[1.0, 0.5], &[0.0; 2]);
    // The message on the slower link goes first, and takes 2.
    assert_eq!((begins, end), (vec![1.5, 0.0], 2.5));
}

/// Every sender has a message for every receiver: links are never idle if each round matches all senders and receivers.
#[test]
fn senders_and_receivers_are_matched() {
    const SIDE: u32 = 8;
    let mut jobs = Jobs::default();
    for from in 0..SIDE {
        for to in 0..SIDE {
            let class = jobs.class(&[from, SIDE + to]);
            for _ in 0..8 {
                jobs.add(None, class);
            }
        }
    }
    let (_, end) = begins_and_end(&jobs, &[1.0; 2 * SIDE as usize], &[0.0; 2 * SIDE as usize]);
    let least = f64::from(8 * SIDE);
    assert!(end >= least && end <= 1.1 * least, "{end} {least}");
}

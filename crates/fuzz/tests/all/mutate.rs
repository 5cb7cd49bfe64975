//! Tests of `mutate`.

use unisono_fuzz::{
    Form, Random,
    mutate::{Pool, tokens},
};

#[test]
fn inputs_depend_on_the_seed_alone() {
    let pool = Pool::new(vec![b"a 1\nbc 22\n".to_vec(), b"x = [1, 2]".to_vec()]);
    let drawn = |seed| {
        let mut random = Random::new(seed);
        (0..200).map(|_| pool.next(Form::Text, &mut random)).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn tokens_are_the_text() {
    let text = "chunk 8.5  é;[x]\n".as_bytes();
    assert_eq!(tokens(text).concat(), text);
    assert_eq!(tokens(text).len(), 10);
}

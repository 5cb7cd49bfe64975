//! Schedules that were found by attacks, each with the verdict expected of it in its first line:
//! `; right`, or `; refused: CODE`.

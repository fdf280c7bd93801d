//! Everything is tested from here, as one program.

fn main() {}

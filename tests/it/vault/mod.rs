//! The vault: what is sealed opens in its place and nowhere else.

mod key_file;
mod page_token;
mod request_state;
mod sealing;

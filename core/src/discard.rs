//! Freeing what may be large, on a thread of its own: routes, patterns, tables and interpreters must not
//! hold up a worker between two requests.

use std::{
    sync::{OnceLock, mpsc},
    thread,
};

/// Bytes of the thread's stack. As for a worker: syntax trees, and closures in closures, are freed by
/// recursion. Only what is used takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// Frees `what` on the thread `discard`, some time soon. Doesn't block.
pub(crate) fn discard(what: Box<dyn Send>) {
    static SENDER: OnceLock<Option<mpsc::Sender<Box<dyn Send>>>> = OnceLock::new();
    let sender = SENDER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Box<dyn Send>>();
        let thread = thread::Builder::new().name("discard".to_owned());
        let thread = thread
            .stack_size(STACK)
            .spawn(move || receiver.into_iter().for_each(drop));
        thread.ok().map(|_| sender)
    });
    match sender {
        // Without the thread it is freed here: slower, and just as right.
        None => drop(what),
        Some(sender) => drop(sender.send(what)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    struct Tells(mpsc::Sender<Option<String>>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let name = thread::current().name().map(str::to_owned);
            self.0.send(name).unwrap();
        }
    }

    #[test]
    fn it_is_freed_on_a_thread_of_its_own() {
        let (tell, told) = mpsc::channel();
        for _ in 0..2 {
            discard(Box::new(Tells(tell.clone())));
            let name = told.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!(name.as_deref(), Some("discard"));
        }
    }
}

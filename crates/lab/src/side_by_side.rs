//! The same work for many items, on a few threads.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Work for each item on so many threads, the results in the items' order. After a failure no
/// further item is begun; of several failures the one of the first item is returned.
pub(crate) fn side_by_side<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<R, E>>>> =
        Mutex::new(items.iter().map(|_| None).collect());
    let one_after_the_other = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            results.lock()[index] = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(one_after_the_other);
        }
    });
    // After a failure some items were not begun: they are not there, and the failure is.
    results.into_inner().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 3, 200] {
            let doubled = side_by_side(&items, threads, |item| Ok::<u64, ()>(2 * item));
            assert_eq!(doubled, Ok((0..200).step_by(2).collect()), "{threads} threads");
        }
        assert_eq!(side_by_side(&[], 4, |()| Err::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn after_a_failure_nothing_is_begun() {
        let begun = AtomicUsize::new(0);
        let failed = side_by_side(&[1, 2, 3, 4], 1, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 2 { Err(*item) } else { Ok(()) }
        });
        assert_eq!((failed, begun.into_inner()), (Err(2), 2));
    }
}
